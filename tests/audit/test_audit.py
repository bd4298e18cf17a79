"""An audit agrees with correct methods, refutes broken ones, and says what it did."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import understudy as us
from tests.audit.halved import smaller_noise
from tests.cli.terminal import run
from understudy.audit.audit import Audit, Samples, findings, played
from understudy.audit.bounds import ClaimedAccount, PureAccount, RhoAccount, VaryingAccount
from understudy.audit.games import Interrupted, Told
from understudy.audit.neighbours import in_words, worst_pairs
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.privacy.cost import UNIT, Budget
from understudy.privacy.curator import Curator
from understudy.progress import silent
from understudy.schema import Category, Schema, Unit
from understudy.testing import cases
from understudy.testing.replay import Leak

CONFIDENCE = 1 - 1e-6
RHO = Budget(6.0, 1e-6).cost("zcdp")


@pytest.fixture(scope="module")
def found() -> Audit:
    return us.audit("laplace", epsilon=3.0, runs=200, confidence=CONFIDENCE)


def _laplace(scale: float, runs: int = 20_000) -> Samples:
    """What runs of one noisy count of true scale `scale` tell, whose noise is said to have scale 1."""
    rng = np.random.default_rng(5)
    sides = [rng.laplace(shift, scale, runs) for shift in (0.0, 1.0)]
    ratios = [np.round(np.abs(side) - np.abs(side - 1.0), 9) for side in sides]  # floats themselves would tell
    return Samples(("ratio",), ratios[0][:, None], ratios[1][:, None])


def _gaussian(scale: float, runs: int = 20_000) -> Samples:
    rng = np.random.default_rng(6)
    shift = (2 * RHO.rho / UNIT) ** 0.5
    sides = [rng.normal(place, scale, runs)[:, None] for place in (0.0, shift)]
    return Samples(("ratio",), sides[0], sides[1])


def test_correct_noise_is_not_refuted_and_half_of_it_is() -> None:
    pure = ClaimedAccount(1.0, 0.0)
    assert 0.75 < findings(_laplace(1.0), pure, CONFIDENCE)[0].bound <= 1.0
    assert findings(_laplace(0.5), pure, CONFIDENCE)[0].bound > 1.0
    concentrated = RhoAccount(6.0, 1e-6, RHO, "zcdp")
    direct, by_account = findings(_gaussian(1.0), concentrated, CONFIDENCE)
    assert by_account is not None
    assert direct.bound < 0.6 * 6.0 < by_account.bound <= 6.0
    direct, by_account = findings(_gaussian(0.5), concentrated, CONFIDENCE)
    assert by_account is not None
    assert by_account.bound > 6.0


def test_a_gaussian_account_is_read_as_one() -> None:
    cost = Budget(6.0, 1e-6).cost("gaussian")
    wide = (RHO.rho / cost.rho) ** 0.5
    found = findings(_gaussian(wide), RhoAccount(6.0, 1e-6, cost, "gaussian"), CONFIDENCE)[1]
    assert found is not None
    assert 0.8 * 6.0 < found.bound <= 6.0


def test_chosen_and_tested_on_other_runs() -> None:
    """Runs that say nothing in the half that chooses cannot win by chance in it: the other half decides."""
    runs, rng = 400, np.random.default_rng(1)
    noise = rng.normal(size=(2, runs, 1))
    noise[1, : runs // 2] += 5.0  # tells the sides apart in the first half only
    samples = Samples(("nothing",), noise[0], noise[1])
    pure = ClaimedAccount(1.0, 0.0)
    assert findings(samples, pure, CONFIDENCE)[0].bound == 0.0


def test_runs_do_not_decide_how_much_error_a_bound_may_have() -> None:
    """Whether all runs have one account is seen afterwards: the bound by the claim is that of half the error anyway."""
    half = 1 - (1 - CONFIDENCE) / 2
    direct, by_account = findings(_laplace(1.0), VaryingAccount(1.0, 0.0), CONFIDENCE)
    assert by_account is None
    assert direct.bound == findings(_laplace(1.0), ClaimedAccount(1.0, 0.0), half)[0].bound
    assert direct.bound < findings(_laplace(1.0), ClaimedAccount(1.0, 0.0), CONFIDENCE)[0].bound


def test_prices_that_differ_between_runs_are_no_account() -> None:
    class Wavering:
        names = ("ratio",)
        told = staticmethod(lambda pair, side: Told((0.0,), {}, accounts.pop()))

    accounts: list[ClaimedAccount] = [PureAccount(1.0, 0.0, parts) for parts in ((0.5, 0.5), (0.4, 0.6)) * 2]
    assert played(cast(Any, Wavering()), cast(Any, None), 2, silent)[1] == VaryingAccount(1.0, 0.0)


def test_a_run_of_the_audit(found: Audit) -> None:
    assert found.claim == (3.0, 0.0)
    assert 0.1 < found.bound <= 3.0  # twelve tries with half as many runs showed 0.41 to 0.77
    assert not found.violated
    words = " ".join(found.sentences())
    assert "laplace claims ε = 3; 200 runs a side show at least ε = " in words
    assert "of 100 runs with the unit" in words
    assert "Made without private data" in words
    assert found.bound < found.telling.expected[-1][1] <= 3.0
    assert next(iter(found.shares)).startswith("measure registered × voted × member")


def test_noise_that_is_too_small_is_caught() -> None:
    with smaller_noise(16):
        found = us.audit("laplace", epsilon=0.5, runs=80, confidence=CONFIDENCE)
    assert found.violated
    assert found.sentences()[0].startswith("THE CLAIM IS REFUTED")


def test_a_method_that_asks_by_the_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Curator.measure

    def peeking(self, targets, cost, weights=None):
        (rows,) = self._bound().counts([Clique()])[Clique()]
        order = slice(None, None, -1 if rows % 2 else 1)
        return measure(self, targets[order], cost, weights)[order]

    monkeypatch.setattr(Curator, "measure", peeking)
    with pytest.raises(Leak, match="differs between neighbours"):
        us.audit("independent", runs=20)


def test_page_and_document(found: Audit, tmp_path: Path) -> None:
    found.save(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Audit of laplace" in page
    assert "no proof of privacy" in page
    with pytest.raises(FileExistsError):
        found.save(tmp_path / "audit.html")
    assert found.document()["bound"] == found.bound


def test_an_own_schema_with_people_of_several_rows() -> None:
    schema = cases.several_rows()
    pairs = worst_pairs(schema)
    assert all(pair.neighbour.num_rows - pair.table.num_rows == schema.unit.rows for pair in pairs)
    assert in_words(pairs[0].record) == "registered = no, voted = no, age = 20"
    found = us.audit("independent", schema, epsilon=8.0, runs=20)
    assert found.bound <= 8.0
    assert "3 rows of registered" in found.pair


def test_open_labels() -> None:
    assert us.audit("independent", cases.open_labels(), epsilon=4.0, runs=20).bound <= 4.0


@pytest.mark.slow
def test_copies_and_public_tables() -> None:
    assert us.audit("laplace", epsilon=4.0, runs=20, copies=2, copies_mode="remeasure").bound <= 4.0
    assert "invented" in " ".join(us.audit("nist_mst", epsilon=4.0, runs=20).notes)


def test_a_private_choice(found: Audit) -> None:
    chosen = us.audit(["laplace", "independent"], choose=1.0, delta=0.0, epsilon=2.0, runs=20)
    assert chosen.claim == (5.0, 0.0)
    assert not chosen.violated
    assert {"measure voted", "select method"} <= set(chosen.shares)
    assert chosen.by_account is not None, "the prices of both releases and of the choice"
    assert "laplace or independent claims ε = 5" in chosen.sentences()[0]


TRAINING = {"steps": 3, "hidden": 4, "latent": 2, "batch": 8, "components": 8, "rate": 0.4}


def test_a_training_that_is_interrupted_and_taken_up() -> None:
    found = us.audit("dpwgan", epsilon=8.0, options=TRAINING, interrupt=True, runs=20)
    assert not found.violated
    assert found.by_account is not None
    assert set(found.shares) == {"train dpwgan"}


def test_answers_that_were_lost_with_a_sitting_are_no_evidence() -> None:
    """The chain of answers that led to the release has every step once, wherever the first sitting ended."""
    schema = Schema((Category(name="sex", labels=("F", "M"), missing=False),), Unit())
    game = Interrupted(schema, "dpwgan", Budget(8.0, 1e-6), TRAINING)
    for _ in range(6):
        played, log = game.witnessed(worst_pairs(schema)[0].table)
        assert [exchange.request.layer for exchange in log] == [0, 1, 2, 3]
        assert played.releases[0].config.seed is not None


def test_what_cannot_be_audited_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="runs"):
        us.audit("laplace", runs=3)
    with pytest.raises(UsageError, match="confidence"):
        us.audit("laplace", runs=20, confidence=1.0)
    with pytest.raises(UsageError, match="laplac"):
        us.audit("laplac", runs=20)
    with pytest.raises(UsageError, match="cannot be resumed"):
        us.audit("laplace", runs=20, interrupt=True)
    with pytest.raises(UsageError, match="choose"):
        us.audit(["laplace", "independent"], runs=20)
    with pytest.raises(UsageError, match="single method"):
        us.audit(["laplace", "independent"], choose=1.0, options={"rounding": "controlled"}, runs=20)


def test_the_command(tmp_path: Path) -> None:
    schema = Schema((Category(name="sex", labels=("F", "M"), missing=False),), Unit())
    schema.to_yaml(tmp_path / "schema.yaml")
    words = ("audit", "laplace", "--schema", tmp_path / "schema.yaml", "--runs", 40, "-o", tmp_path / "page.html")
    shown = run(*words)
    assert shown.status == 0, shown.err
    assert "40 runs a side show at least" in shown.words
    assert "and a unit" in shown.words
    assert (tmp_path / "page.html").is_file()
    again = run(*words)
    assert again.status == 2, "nothing is overwritten"
    with smaller_noise(20):
        shown = run("audit", "laplace", "--epsilon", 0.5, "--runs", 60, "--json")
    assert shown.status == 1
    assert '"violated": true' in shown.out
