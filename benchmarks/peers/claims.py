"""What packages say of their privacy, held against what they do: each check runs in the package's own environment.

    python -m benchmarks.peers.claims                      # all packages that have checks, into benchmarks/results
    python -m benchmarks.peers.claims --only dpmm --cache FOLDER
    python -m benchmarks.peers.claims --only dpsynth --checkout google/dpsynth=FOLDER --checkout ryan112358/mbi=FOLDER

What was found of other packages stays. A check prints what it found and whether the statement holds; it looks at
nothing but the package's public functions.

Noise beside the count. Noise drawn as a floating-point number and then added to a count is not the noisy count of a
proof: numbers of a larger magnitude are farther apart. A count of 127 comes out between −1 and 0 only by noise between
−128 and −127, whose floats are 2⁻⁴⁶ apart; a count of 128 by noise between −129 and −128, whose floats are 2⁻⁴⁵ apart.
So an answer that is no multiple of 2⁻⁴⁵ cannot come from 128, and no ε holds for it, however exact the noise was.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Found = dict[str, object]
DRAWS, SCALE = 60_000, 100.0
GRID = 2.0**45


def off_grid(noise: Callable[[int], npt.ArrayLike], count: int) -> tuple[int, int]:
    """Of the noisy counts between −1 and 0: how many there are, and how many are no multiple of 2⁻⁴⁵."""
    noisy = float(count) + np.asarray(noise(DRAWS), dtype=np.float64)
    near = noisy[(noisy > -1.0) & (noisy < 0.0)]
    return len(near), int((near * GRID != np.floor(near * GRID)).sum())


def grid_check(claim: str, noise: Callable[[int], npt.ArrayLike], named: str) -> Found:
    """Whether neighbouring counts can be told apart for sure by the float grid of their noisy versions."""
    (low, apart), (high, never) = off_grid(noise, 127), off_grid(noise, 128)
    found = (
        f"of {DRAWS:,} noisy counts each: of 127, {apart} of {low} answers between −1 and 0 lie on floats that a count "
        f"of 128 cannot reach; of 128, {never} of {high}"
    )
    check = f"{named} (scale {SCALE:g}) added to the counts 127 and 128 as the package does; multiples of 2⁻⁴⁵ counted"
    return {"claim": claim, "check": check, "found": found, "holds": not (apart and not never)}


def dpmm() -> list[Found]:
    """Floating-point safety of its noise."""
    from dpmm.models.base.utils import gaussian_noise

    return [
        grid_check(
            "“floating-point precision of DP mechanisms” (its README)",
            lambda size: gaussian_noise(SCALE, size),
            "`gaussian_noise`",
        )
    ]


def dpsynth() -> list[Found]:
    """Floating-point safety of its noise, and whether MST hides the number of rows."""
    from dpsynth import discrete_mechanisms as mechanisms
    from dpsynth.discrete_mechanisms.common import measure_marginals_with_noise
    from mbi import Dataset, Domain

    class Nobody:
        """A table whose one marginal is empty: what is measured is the noise."""

        def project(self, names: object) -> "Nobody":
            return self

        def datavector(self) -> npt.NDArray[np.float64]:
            return np.zeros(DRAWS)

    def noise(size: int) -> npt.ArrayLike:
        (found,) = measure_marginals_with_noise(np.random.default_rng(), Nobody(), [("a",)], SCALE)  # type: ignore[arg-type]
        return np.asarray(found.noisy_measurement)[:size]

    claim = (
        "“while satisfying differential privacy” (its README; that of its adapters says that randomness is audited in "
        "its pipeline alone)"
    )
    rows = []
    for number in (300, 301):
        ready = mechanisms.DiscreteConfig(mechanisms.MSTConfig()).calibrate(epsilon=0.1, delta=1e-9)
        columns = {"a": np.arange(number) % 3, "b": np.arange(number) % 2}
        made = ready(np.random.default_rng(), Dataset(columns, Domain(["a", "b"], [3, 2]))).synthetic_data
        rows.append(len(np.asarray(made.data["a"])))
    count = {
        "claim": claim,
        "check": "MST in its wrapper for discrete tables (ε = 0.1, δ = 1e-9) for 300 and 301 rows; its rows counted",
        "found": f"{rows[0]} and {rows[1]} rows",
        "holds": rows != [300, 301],
    }
    return [grid_check(claim, noise, "`measure_marginals_with_noise`"), count]


def mbi() -> list[Found]:
    """Whether it finds a table that explains its measurements; it draws no noise and promises none."""
    from mbi import Domain, LinearMeasurement, estimation

    joint = np.random.default_rng(5).multinomial(1000, np.random.default_rng(6).dirichlet(np.ones(24))).reshape(3, 4, 2)
    exact = {("a", "b"): joint.sum(axis=2), ("b", "c"): joint.sum(axis=0)}
    measured = [LinearMeasurement(table.ravel().astype(float), names) for names, table in exact.items()]
    model = estimation.MirrorDescent().estimate(Domain(["a", "b", "c"], [3, 4, 2]), measured, iters=1000)
    gaps = [
        np.abs(np.asarray(model.project(names).datavector()) - table.ravel()).max() for names, table in exact.items()
    ]
    return [
        {
            "claim": "“by maximizing the likelihood of the noisy observations” (its documentation; it draws no noise)",
            "check": "two exact tables of a chain a–b–c, 1,000 rows, given to `MirrorDescent`; cells of its model",
            "found": f"the cell that is farthest off is off by {max(gaps):.2g} rows",
            "holds": bool(max(gaps) < 1.0),
        }
    ]


def smartnoise() -> list[Found]:
    """Floating-point safety of its noise, and whether MST hides the number of rows."""
    import pandas as pd
    from snsynth.mst import MSTSynthesizer
    from snsynth.utils import gaussian_noise

    rows = []
    for number in (300, 301):
        synthesizer = MSTSynthesizer(epsilon=0.001, delta=1e-9)
        frame = pd.DataFrame({"a": [0, 1, 2] * number, "b": [0, 1] * number + [0] * number}).iloc[:number]
        synthesizer.fit(frame, categorical_columns=["a", "b"], preprocessor_eps=0.0001)
        rows.append(len(synthesizer.sample()))
    count = {
        "claim": "differentially private synthesizers (its package page)",
        "check": "`MSTSynthesizer(epsilon=0.001, delta=1e-9)` fitted to 300 and 301 rows; rows of `sample()` counted",
        "found": f"{rows[0]} and {rows[1]} rows: one row more or less shows for sure (its model is fitted to the exact "
        "number, too). A claim for replaced rows is not touched by this",
        "holds": rows != [300, 301],
    }
    grid = grid_check(
        "differentially private synthesizers (its package page)",
        lambda size: gaussian_noise(SCALE, size),
        "`gaussian_noise`",
    )
    return [count, grid]


def datasynthesizer() -> list[Found]:
    """Whether noise is fresh by default, and what a description costs."""
    import pandas as pd
    from DataSynthesizer import DataDescriber as module

    spent: list[float] = []

    def noting(function: Callable[..., object], place: int) -> Callable[..., object]:
        def noted(*given: object, **named: object) -> object:
            spent.append(float(str(named.get("epsilon", given[place]))))
            return function(*given, **named)

        return noted

    describer = module.DataDescriber
    single = describer.inject_laplace_noise_into_distribution_per_attribute
    describer.inject_laplace_noise_into_distribution_per_attribute = noting(single, 1)
    module.greedy_bayes = noting(module.greedy_bayes, 2)
    module.construct_noisy_conditional_distributions = noting(module.construct_noisy_conditional_distributions, 2)
    made = []
    with tempfile.TemporaryDirectory() as folder:
        table = str(Path(folder) / "table.csv")
        pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1, 2, 3] * 25, "c": [1, 0, 0, 1] * 25}).to_csv(table, index=False)
        for _ in range(2):
            one = describer()
            one.describe_dataset_in_correlated_attribute_mode(table, k=1, epsilon=1.0)
            made.append(json.dumps(one.data_description, default=str))
    return [
        {
            "claim": "applies differential privacy to achieve a strong guarantee (its README)",
            "check": "the same table described twice at ε = 1 with default arguments; descriptions compared",
            "found": "equal: the default seed 0 fixes the noise, which anybody can draw again and take off"
            if made[0] == made[1]
            else "different",
            "holds": made[0] != made[1],
        },
        {
            "claim": "`epsilon`, a parameter of differential privacy (its documentation)",
            "check": "the ε of the noisy columns, of the network and of its tables noted in one description at ε = 1",
            "found": f"{' + '.join(f'{one:g}' for one in spent[:3])} = {sum(spent[:3]):g}, all in what is published",
            "holds": sum(spent[:3]) <= 1.0,
        },
    ]


CHECKS: dict[str, Callable[[], list[Found]]] = {
    "mbi": mbi,
    "dpmm": dpmm,
    "dpsynth": dpsynth,
    "smartnoise-synth": smartnoise,
    "DataSynthesizer": datasynthesizer,
}


def main() -> None:
    """Runs the checks of one package here, or those of all in their environments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--here", choices=CHECKS, help="the package whose environment this is")
    parser.add_argument("--only", nargs="*", default=list(CHECKS), choices=CHECKS)
    parser.add_argument("--cache", type=Path, help="folder of the environments")
    parser.add_argument("--python", help="Python to make environments with")
    parser.add_argument("--checkout", action="append", default=[], metavar="OWNER/NAME=FOLDER")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(CHECKS[given.here](), ensure_ascii=False))
        return
    from .environment import EnvironmentUnavailable  # needs nothing that a peer's environment lacks

    checkouts = {name: Path(folder) for name, _, folder in (one.partition("=") for one in given.checkout)}
    target = Path(__file__).parents[1] / "results" / "claims.json"
    target.parent.mkdir(exist_ok=True)
    for name in given.only:
        try:
            found = checked(name, given.cache, given.python, checkouts)
        except EnvironmentUnavailable as unavailable:
            print(f"not checked: {unavailable}", flush=True)
            continue
        before: list[Found] = json.loads(target.read_text(encoding="utf-8")) if target.exists() else []
        kept = sorted(
            [one for one in before if one["peer"] != name] + found, key=lambda one: [*CHECKS].index(str(one["peer"]))
        )
        target.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(json.dumps(found, indent=1, ensure_ascii=False), flush=True)


def checked(name: str, cache: Path | None, python: str | None, checkouts: dict[str, Path]) -> list[Found]:
    """What the checks of a package find in its environment."""
    from .environment import ROOT, cache_folder, checked_out, environment, peers

    peer = peers()[name]
    paths = [ROOT, *checked_out(peer, checkouts)]
    interpreter = environment(peer, cache_folder(cache), python)
    command = [str(interpreter), "-W", "ignore", "-m", "benchmarks.peers.claims", "--here", name]
    variables = os.environ | dict(peer.variables) | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    answer = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if answer.returncode:
        sys.exit(f"{name}: {answer.stderr[-1000:]}")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return [{"peer": name, **one, "date": today} for one in json.loads(answer.stdout.splitlines()[-1])]


if __name__ == "__main__":
    main()
