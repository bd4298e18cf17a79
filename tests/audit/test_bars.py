"""Every method held against its claim: 2,000 whole runs a side or more, and again with half the noise.

A false alarm has a chance of 10⁻⁶ in each audit. The least shares of the claim say that an audit has power; where none
is given, methods spend much of their budget where no single pair of tables shows it. Several numbers of runs are tried
one after the other, each with fresh runs, until the share is reached or the fault is caught; a bound above the claim
fails at any of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from unittest import mock

import pyarrow as pa
import pytest

from tests.audit.halved import smaller_noise
from understudy.audit.audit import Audit, audit
from understudy.audit.neighbours import invented_public
from understudy.privacy import curator
from understudy.privacy.cost import selection_rate
from understudy.schema import Category, Integer, OpenCategory, Schema, UniformBins, Unit

pytestmark = pytest.mark.slow

CONFIDENCE = 1 - 1e-6


def _columns(*columns: Category | Integer | OpenCategory) -> Schema:
    return Schema(columns, Unit())


PAIR = _columns(*(Category(name=name, labels=("no", "yes"), missing=False) for name in ("voted", "member")))
OPEN = _columns(PAIR.columns[0], OpenCategory(name="job", most_labels=20))
SPARSE = _columns(
    *(Integer(name=name, lower=0, upper=9999, bins=UniformBins(10_000), missing=False) for name in ("wage", "rent"))
)
TRAINING = {"columns_share": 0.95, "steps": 3, "hidden": 4, "latent": 2, "batch": 8, "components": 8, "rate": 0.4}

STEP = {**TRAINING, "columns_share": 0, "steps": 1, "rate": 0.9, "gradient_norm": 1e-3}
"""All noise is that of the training, and every row's gradient is as long as it may be."""


@dataclass(frozen=True)
class Bar:
    """A method, its settings, how many runs (and how many else), and the least share of the claim they must show."""

    method: str | tuple[str, ...]
    least: float = 0.0
    epsilon: float = 10.0
    delta: float | None = None
    runs: tuple[int, ...] = (2000,)
    options: Mapping[str, object] = field(default_factory=dict)
    schema: Schema | None = None
    copies: int = 1
    copies_mode: str = "remeasure"
    public: pa.Table | None = None
    choose: float | None = None
    interrupt: bool = False
    halved: tuple[int, ...] = (500, 2000, 4000)
    """Runs in which half the noise must be noticed."""

    def found(self, runs: int) -> Audit:
        return audit(
            self.method,
            self.schema,
            epsilon=self.epsilon,
            delta=self.delta,
            runs=runs,
            options=self.options,
            copies=self.copies,
            copies_mode=self.copies_mode if self.copies > 1 else "resample",
            public=self.public,
            choose=self.choose,
            interrupt=self.interrupt,
            confidence=CONFIDENCE,
        )


BARS = {
    "laplace": Bar("laplace", 0.85, epsilon=3.0, runs=(8000, 12_000)),
    "independent": Bar("independent", 0.6, runs=(3000, 12_000)),
    "mst": Bar("mst", 0.6, runs=(3000, 12_000)),
    "privsyn": Bar("privsyn", 0.5, runs=(2000, 4000, 8000)),
    "privbayes": Bar("privbayes", 0.5, runs=(2000, 4000, 8000), schema=PAIR),
    "aim": Bar("aim"),
    "aim, public rounds": Bar("aim", public=invented_public(PAIR), schema=PAIR),
    "dpsyn": Bar("dpsyn", options={"marginals": "pairs"}),
    "ensemble": Bar("ensemble"),
    "fieldgroups": Bar("fieldgroups", epsilon=3.0, halved=(4000, 12_000)),
    "mwem": Bar("mwem"),
    "nist_mst": Bar("nist_mst"),
    "pfr": Bar("pfr", epsilon=3.0, halved=(2000, 8000)),
    "random_partition": Bar("random_partition"),
    "rdt": Bar("rdt"),
    "steps": Bar("steps"),
    "universal_histogram": Bar("universal_histogram"),
    "laplace, sparse": Bar("laplace", epsilon=3.0, schema=SPARSE, halved=(500, 2000)),
    "laplace, two copies": Bar("laplace", epsilon=6.0, copies=2),
    "mst, three copies of one model": Bar("mst", schema=PAIR, copies=3, copies_mode="resample"),
    "independent, open labels": Bar("independent", schema=OPEN),
    "dpwgan": Bar("dpwgan", options=TRAINING, schema=PAIR, halved=(2000, 8000)),
    "dpwgan, one step": Bar("dpwgan", epsilon=4.0, options=STEP, schema=PAIR, halved=(2000, 4000, 8000)),
    "dpwgan, interrupted": Bar("dpwgan", options=TRAINING, schema=PAIR, interrupt=True, halved=(2000, 8000)),
    "a choice": Bar(("laplace", "independent"), epsilon=2.0, delta=0.0, choose=2.0),
    "a choice under δ": Bar(("mst", "independent"), epsilon=4.0, delta=1e-6, choose=0.5, schema=PAIR),
}


@pytest.mark.parametrize("name", BARS)
def test_no_method_tells_more_than_it_claims(name: str) -> None:
    bar = BARS[name]
    for runs in bar.runs:
        found = bar.found(runs)
        _print(name, found)
        assert found.bound <= found.claim[0], found.sentences()
        if found.bound >= bar.least * found.claim[0]:
            return
    pytest.fail(f"the audit has lost its power: {found.sentences()}")


@pytest.mark.parametrize("name", BARS)
def test_half_the_noise_is_caught(name: str) -> None:
    for runs in BARS[name].halved:
        with smaller_noise():
            found = BARS[name].found(runs)
        _print(f"{name}, half the noise", found)
        if found.violated:
            return
    pytest.fail("half the noise is not noticed")


def test_a_choice_that_tells_more_than_is_paid_is_caught() -> None:
    """The choice at eight times the rate that its ε buys."""
    bar = BARS["a choice"]
    with mock.patch.object(curator, "selection_rate", lambda *given, **more: 8 * selection_rate(*given, **more)):
        assert bar.found(bar.runs[-1]).violated


def _print(name: str, found: Audit) -> None:
    """What `make test-slow` shows with -rP: how far each method is from its bar."""
    share, seconds = found.bound / found.claim[0], found.seconds
    print(f"{name}: {share:.3f} of the claim ε = {found.claim[0]:.4g} in {found.runs:,} runs a side, {seconds:.0f} s")
