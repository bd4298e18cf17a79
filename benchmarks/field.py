"""The field on one coded table: PrivBayes beside the PrivBayes of two other packages, and the methods of the challenge.

    python -m benchmarks.field FOLDER                     # NAME.csv of codes and NAME-domain.json, or data.parquet
    python -m benchmarks.field FOLDER --methods privbayes --repeats 5
    python -m benchmarks.field FOLDER --peers --cache FOLDER --minutes 60     # with the packages beside ours
    python -m benchmarks.field FOLDER --peers --parents 2 --most-codes 16     # on coarser columns, for slow packages

Timed is `synthesize` on a frame in memory, as in `benchmarks.graphical`; the first repeat, which loads compiled
kernels, is shown apart. Errors are mean total variations between the synthetic and the real table over all pairs and
triples. With --peers, ours and theirs run on the same files, one after the other, through the contract of
`benchmarks.peers`, at equal privacy: DataSynthesizer at pure ε (its claim; it spends 2ε), dpmm at (ε, δ). The bar:
errors no worse than either package's, CPU seconds no more than a tenth.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.alone import alone
from benchmarks.peers.compare import Entry, entry
from benchmarks.peers.contract import DOMAIN, RESULT, SETTINGS, TABLE
from benchmarks.peers.environment import EnvironmentUnavailable
from benchmarks.peers.run import Limits, run_ours, run_peer

from benchmarks import graphical

DELTA = 1e-9
METHODS: dict[str, tuple[str, float, dict[str, object]]] = {
    "privbayes": ("privbayes", DELTA, {}),
    "privbayes pure": ("privbayes", 0.0, {}),
    "published": ("privbayes", 0.0, {"preset": "published"}),
    "nist": ("privbayes", DELTA, {"preset": "nist"}),
    "fieldgroups": ("fieldgroups", 0.0, {}),
    "pfr": ("pfr", 0.0, {}),
}
PEERS = {"DataSynthesizer": 0.0, "dpmm": DELTA}
TIMES = 10.0


def measure(folder: Path, name: str, epsilon: float, repeats: int) -> graphical.Outcome:
    """Runs one method, in this process."""
    method, delta, options = METHODS[name]
    graphical.METHODS[name] = (method, options)
    graphical.DELTA = delta
    return graphical.measure(folder, name, epsilon, repeats)


def coarser(
    domain: dict[str, int], codes: dict[str, npt.NDArray[np.int64]], most: int
) -> tuple[dict[str, int], dict[str, npt.NDArray[np.int64]]]:
    """Columns of more than `most` codes in that many even ranges of codes."""
    widths = {name: -(-size // most) for name, size in domain.items()}
    sizes = {name: -(-size // widths[name]) for name, size in domain.items()}
    return sizes, {name: column // widths[name] for name, column in codes.items()}


def job(
    folder: Path, target: Path, epsilon: float, delta: float, *, options: dict[str, int], most_codes: int | None
) -> Path:
    """The input folder of the contract for one comparison."""
    domain, codes = graphical.read(folder)
    if most_codes is not None:
        domain, codes = coarser(domain, codes, most_codes)
    target.mkdir(parents=True)
    pq.write_table(pa.table(codes), target / TABLE)
    (target / DOMAIN).write_text(json.dumps(domain), encoding="utf-8")
    settings = {"method": "privbayes", "epsilon": epsilon, "delta": delta, "repeats": 1, "options": options}
    (target / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
    return target


def verdict(ours: Entry, theirs: Entry) -> str:
    """Whether we are no worse and ten times faster."""
    if not ours.numbers or not theirs.numbers:
        return f"no result: {theirs.error or ours.error}"
    one, other = ours.numbers, theirs.numbers
    closer = all(one[way] <= other[way] for way in ("two_way", "three_way"))
    return "met" if closer and TIMES * one["seconds_cpu"] <= other["seconds_cpu"] else "MISSED"


def compare(
    folder: Path, epsilon: float, cache: Path | None, limits: Limits, *, parents: int, most_codes: int | None
) -> None:
    """Ours beside each package, at the privacy that the package claims."""
    with tempfile.TemporaryDirectory() as place:
        for peer, delta in PEERS.items():
            inner = Path(place) / peer
            source = job(folder, inner / "in", epsilon, delta, options={}, most_codes=most_codes)
            degree = {"parents": parents} if delta == 0.0 else {}
            theirs = job(folder, inner / "in theirs", epsilon, delta, options=degree, most_codes=most_codes)
            outputs = [inner / side for side in ("ours", "theirs")]
            run_ours(source, outputs[0], limits=limits)
            try:
                run_peer(peer, theirs, outputs[1], cache=cache, limits=limits)
            except EnvironmentUnavailable as error:
                print(f"{peer}: {error}")
                continue
            rows = [entry(source, out, json.loads((out / RESULT).read_text(encoding="utf-8"))) for out in outputs]
            for row in rows:
                shown = "  ".join(f"{key} {value:.4g}" for key, value in row.numbers.items())
                print(f"δ = {delta:g}  {row.name:<28} {shown} {row.error or ''}", flush=True)
            print(f"δ = {delta:g}  against {peer}: {verdict(*rows)}", flush=True)


def main() -> None:
    """Print one line per method, then the packages if asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", type=float, nargs="*", default=[1.0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--parents", type=int, default=2, help="degree of DataSynthesizer's network")
    parser.add_argument("--most-codes", type=int, default=None, help="coarser columns for the packages and for ours")
    given = parser.parse_args()
    print("times: CPU s of the first repeat, mean CPU s and wall s of the others; peak of the process")
    print(
        f"{'method':<14}{'ε':>6}{'first':>16}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}{'2-way TV':>19}{'3-way TV':>18}"
    )
    for epsilon in given.epsilon:
        for name in given.methods:
            print(alone(measure, given.folder, name, epsilon, given.repeats).line(), flush=True)
        if given.peers:
            limits = Limits(seconds=60.0 * given.minutes)
            options = {"parents": given.parents, "most_codes": given.most_codes}
            compare(given.folder, epsilon, given.cache, limits, **options)


if __name__ == "__main__":
    main()
