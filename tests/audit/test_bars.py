"""Every method held against its claim: 2,000 whole runs a side or more, and again with half the noise.

A false alarm has a chance of 10⁻⁶ in each audit, and nothing is tried again. The least shares of the claim say that an
audit has power; where none is given, methods spend much of their budget where no single pair of tables shows it.
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


@dataclass(frozen=True)
class Bar:
    """A method, its settings, how many runs, and the least share of the claim they must show."""

    method: str | tuple[str, ...]
    least: float = 0.0
    epsilon: float = 10.0
    delta: float | None = None
    runs: int = 2000
    options: Mapping[str, object] = field(default_factory=dict)
    schema: Schema | None = None
    copies: int = 1
    copies_mode: str = "remeasure"
    public: pa.Table | None = None
    choose: float | None = None
    interrupt: bool = False
    halved: int = 4000
    """Runs in which half the noise must be noticed; 0 for a sum of claims under δ, which is far more than is paid."""

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
    "laplace": Bar("laplace", 0.85, epsilon=3.0, runs=12_000),
    "independent": Bar("independent", 0.6, runs=12_000),
    "mst": Bar("mst", 0.6, runs=12_000),
    "privsyn": Bar("privsyn", 0.5, runs=4000),
    "privbayes": Bar("privbayes", 0.5, runs=4000, schema=PAIR),
    "aim": Bar("aim"),
    "aim, public rounds": Bar("aim", public=invented_public(PAIR), schema=PAIR),
    "dpsyn": Bar("dpsyn", options={"marginals": "pairs"}),
    "ensemble": Bar("ensemble"),
    "fieldgroups": Bar("fieldgroups", epsilon=3.0, halved=12_000),
    "mwem": Bar("mwem"),
    "nist_mst": Bar("nist_mst"),
    "pfr": Bar("pfr", epsilon=3.0, halved=8000),
    "random_partition": Bar("random_partition"),
    "rdt": Bar("rdt"),
    "steps": Bar("steps"),
    "universal_histogram": Bar("universal_histogram"),
    "laplace, sparse": Bar("laplace", epsilon=3.0, schema=SPARSE, halved=2000),
    "laplace, two copies": Bar("laplace", epsilon=6.0, copies=2),
    "mst, three copies of one model": Bar("mst", schema=PAIR, copies=3, copies_mode="resample"),
    "independent, open labels": Bar("independent", schema=OPEN),
    "dpwgan": Bar("dpwgan", options=TRAINING, schema=PAIR, halved=8000),
    "dpwgan, interrupted": Bar("dpwgan", options=TRAINING, schema=PAIR, interrupt=True, halved=8000),
    "a choice": Bar(("laplace", "independent"), epsilon=2.0, delta=0.0, choose=2.0),
    "a choice under δ": Bar(("mst", "independent"), epsilon=4.0, delta=1e-6, choose=2.0, schema=PAIR, halved=0),
}


@pytest.mark.parametrize("name", BARS)
def test_no_method_tells_more_than_it_claims(name: str) -> None:
    bar = BARS[name]
    found = bar.found(bar.runs)
    assert found.bound <= found.claim[0], found.sentences()
    assert found.bound >= bar.least * found.claim[0], f"the audit has lost its power: {found.sentences()}"


@pytest.mark.parametrize("name", [name for name, bar in BARS.items() if bar.halved])
def test_half_the_noise_is_caught(name: str) -> None:
    with smaller_noise():
        assert BARS[name].found(BARS[name].halved).violated, "half the noise is not noticed"


def test_a_choice_that_tells_more_than_is_paid_is_caught() -> None:
    """The choice at eight times the rate that its ε buys."""
    bar = BARS["a choice"]
    with mock.patch.object(curator, "selection_rate", lambda *given, **more: 8 * selection_rate(*given, **more)):
        assert bar.found(bar.runs).violated
