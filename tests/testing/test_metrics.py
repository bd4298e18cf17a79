"""Every metric keeps the contract of metrics, and the contract can fail."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pytest

from tests.evaluate.examples import mixed, mixed_frame
from understudy.evaluate.metric import METRICS, Context, Metric, Result, Scale, TablePair
from understudy.testing.contracts import check_metric

FORMULA = "income ~ age + sex + region"
OPTIONS: dict[str, dict[str, object]] = {
    "pmse": {"draws": 3},
    "classifiers": {"trees": 10, "most_rows": 100, "draws": 2},
    "regression": {"formula": FORMULA},
    "ci_overlap": {"formula": FORMULA},
    "nist": {"include_last": True},
    "slopes": {"groups": ("sex", "region")},
}
TABLE = pa.Table.from_pandas(mixed_frame(400), preserve_index=False)


# scikit-learn takes most of a second for each of some twenty comparisons.
SLOW = {"classifiers"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in METRICS.names()]
)
def test_metric_keeps_the_contract(name: str) -> None:
    # Trained on parts of the tables; `classifiers` scores held-out rows, whose ratio is near 1 between equal tables.
    close = {"prediction": 0.01, "classifiers": 1.5}.get(name, 1e-6)
    check_metric(METRICS.make(name, OPTIONS.get(name)), TABLE, mixed(), can_be_worse=name != "disclosure", close=close)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pmse", {"draws": 3, "null": "bootstrap"}),
        ("pmse", {"draws": 3, "null": "fitted_model", "terms": "interactions"}),
        ("pmse", {"draws": 3, "scheme": "folds", "complexity": 0.001}),
        ("specks", {"terms": "interactions"}),
        ("regression", {"formula": "voted ~ age + sex", "family": "logistic"}),
        ("ci_overlap", {"formula": "voted ~ age + sex", "family": "firth"}),
        ("marginals", {"ways": 1}),
    ],
)
def test_options_keep_order_and_reasons(name: str, options: dict[str, object]) -> None:
    chosen = METRICS.make(name, options)
    if options.get("scheme") == "folds" or options.get("ways") == 1:  # scores other rows, or cannot see shuffling
        from understudy.testing import contracts as contract

        apart = contract._run(chosen, TABLE, [contract._shuffled_columns(TABLE)], mixed())
        contract._check_order(chosen, TABLE, mixed(), apart)
        contract._check_reasons(chosen, apart)
    else:
        check_metric(chosen, TABLE, mixed())


@dataclass(frozen=True)
class _FirstRow(Metric):
    """Looks at the first row only, whatever comes first."""

    name: ClassVar[str] = "first_row"
    question: ClassVar[str] = "Is the first row the same?"
    scales: ClassVar[tuple[Scale, ...]] = (Scale("different", "1 if the first rows differ"),)

    def compare(self, pair: TablePair, context: Context) -> Result:
        return Result(self.name, self.question, (self.scales[0].score(0.5, 0.5),))


def test_contract_can_fail() -> None:
    with pytest.raises(
        AssertionError, match=r"metric first_row: different is 0.5 on equal tables, the best is 0.0. Let"
    ):
        check_metric(_FirstRow(), TABLE, mixed())
