"""A contract that nothing can break is worth nothing: each is shown to fail on something wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from tests.nets.doubles import Chooser, Grower
from tests.nets.planted import BLUNDERS, LEAKS, patched
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.source import Batch, CountSource, LabelCounts, PrivateTable
from understudy.counts.streaming import ChunkedSource
from understudy.domain import Clique, Domain
from understudy.errors import InputError, Problem, UsageError
from understudy.methods.independent import Independent
from understudy.methods.method import METHODS, Plan, PublicFacts, noisy_step
from understudy.models.product import BlockModel
from understudy.privacy import randomizer as secure
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.noise import discrete_laplace
from understudy.release.release import Fitted
from understudy.schema import Category, OpenCategory, Schema, Unit
from understudy.synthesizer import pipeline, synthesize
from understudy.synthesizer.design import Design
from understudy.testing import NoNoise, check_model, check_source
from understudy.testing import cases as tables
from understudy.testing.contracts import _check_header_that_is_data
from understudy.testing.method_contract import PLACES, MethodChecks, _some_pairs, check_method
from understudy.testing.replay import Leak, designed_pairs

DOMAIN = Domain.of({"a": 2, "b": 3})


def _model(weights: list[float]) -> BlockModel:
    parts = {DOMAIN.clique("a"): np.array(weights), DOMAIN.clique("b"): np.array([0.2, 0.3, 0.5])}
    return BlockModel.of_marginals(DOMAIN, parts, (), 5.0)


def test_model_contract_rejects_another_distribution() -> None:
    joint = np.outer([0.4, 0.6], [0.2, 0.3, 0.5]).reshape(-1)
    check_model(_model([0.4, 0.6]), joint)
    with pytest.raises(
        AssertionError, match=r"model blocks: marginal of a is up to 0.05 away from enumeration. Return"
    ):
        check_model(_model([0.45, 0.55]), joint)


def test_model_contract_rejects_a_sampler_whose_columns_rise_together() -> None:
    joint = np.outer([0.4, 0.6], [0.2, 0.3, 0.5]).reshape(-1)

    class Sorted(BlockModel):
        def draw(self, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {name: np.sort(codes) for name, codes in super().draw(rows, rng).items()}

    with pytest.raises(AssertionError, match=r"model blocks: rows do not follow the joint table .* Draw whole records"):
        check_model(Sorted(DOMAIN, _model([0.4, 0.6]).blocks, 5.0), joint)


def test_source_contract_rejects_lost_rows_and_double_counting() -> None:
    lost = "source FrameTable: three columns: counts of the total differ from counting 1 rows by hand. Let"
    with pytest.raises(AssertionError, match=lost):
        check_source(lambda table, schema: open_table(table.slice(1), schema))
    counting = ChunkedSource.counts
    doubled = lambda self, cliques: {key: 2 * part for key, part in counting(self, cliques).items()}  # noqa: E731
    with (
        mock.patch.object(ChunkedSource, "counts", doubled),
        pytest.raises(AssertionError, match="counts of the total"),
    ):
        check_source(open_table)


class Forgetful:
    """A source that answers every query by itself and never heard of units."""

    undeclared, frame_kind = (), "pandas"

    def __init__(self, table: pa.Table, schema: Schema) -> None:
        self.table, self.schema = table, schema

    def label_counts(self, column: str) -> LabelCounts:
        return open_table(self.table, replace(self.schema, unit=Unit())).label_counts(column)

    def bind(self, codec: TableCodec) -> CountSource:
        return open_table(self.table, replace(self.schema, unit=Unit())).bind(codec)


class OnlyRows(PrivateTable):
    """A source that hands over rows of a frame and knows nothing else."""

    def __init__(self, table: pa.Table, schema: Schema) -> None:
        super().__init__(table.column_names, schema)
        self.table = table

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        yield self.table.num_rows, {name: self.table.column(name) for name in columns}


def test_source_contract_accepts_a_source_that_only_hands_over_rows() -> None:
    check_source(OnlyRows)


def test_source_contract_says_that_a_source_counts_by_itself() -> None:
    with pytest.raises(AssertionError, match="unit bound: Forgetful is not a PrivateTable"):
        check_source(Forgetful)  # type: ignore[arg-type]


def test_source_contract_says_which_source_and_case_broke_off() -> None:
    """A bare assertion of a stranger's source gets a message, another error of it a note."""

    class Asserting(OnlyRows):
        def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
            raise AssertionError

    class Failing(OnlyRows):
        def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
            raise KeyError("lost")

    with pytest.raises(AssertionError, match="source Asserting: three columns: an assertion without a message failed"):
        check_source(Asserting)
    with pytest.raises(KeyError) as failed:
        check_source(Failing)
    assert failed.value.__notes__ == ["While checking three columns.", "While checking source Failing."]


def test_a_source_cannot_replace_the_cutting() -> None:
    with pytest.raises(TypeError, match="Hasty replaces bind, which cut each unit to its bound"):
        type("Hasty", (OnlyRows,), {"bind": lambda self, codec: None})
    with pytest.raises(TypeError, match="Shifty replaces schema"):
        type("Shifty", (OnlyRows,), {"schema": property(lambda self: None)})


def test_the_door_counts_one_person_once_whatever_the_source() -> None:
    """One person with 5,000 rows: refused where nobody would cut them, and one row otherwise."""
    schema = Schema((Category(name="sex", labels=("F", "M")), OpenCategory(name="job")), Unit("person", 1))
    jobs = [f"job {number}" for number in range(5000)]
    table = pa.table({"sex": ["F"] * 5000, "job": jobs, "person": ["Ada"] * 5000})
    with pytest.raises(UsageError, match="Forgetful is not a PrivateTable"):
        Curator(Forgetful(table, schema), Cost(epsilon=UNIT), NoNoise())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="A source of your own is a subclass"):
        synthesize(Forgetful(table, schema), schema, method="independent", epsilon=1.0, delta=1e-6)
    curator = Curator(OnlyRows(table, schema), Cost(epsilon=2 * UNIT, delta=DELTA_UNIT // 2), NoNoise())
    found = curator.discover("job", Cost(epsilon=UNIT, delta=DELTA_UNIT // 2))
    assert found.values.sum() <= 1
    curator.fix_codec(TableCodec.of(schema, {"job": []}))
    (answer,) = curator.measure([curator.domain.clique(["sex"])], Cost(epsilon=UNIT))
    assert answer.values.tolist() == [1, 0, 0]


def test_a_batch_with_columns_of_unequal_length_is_refused() -> None:
    class Ragged(OnlyRows):
        def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
            yield 3, {name: pa.nulls(2) for name in columns}

    schema = tables.several_rows(1)
    source = Ragged(tables.some_rows(schema, 3, seed=1), schema).bind(TableCodec.of(schema))
    with pytest.raises(InputError, match="differ in length"):
        source.counts([source.domain.everything()])


def test_source_contract_says_that_a_bound_is_ignored() -> None:
    everybody = lambda unit, *_: np.flatnonzero(unit >= 0)  # noqa: E731
    with (
        mock.patch("understudy.counts.source._first_rows", everybody),
        pytest.raises(AssertionError, match="unit bound: one person is counted with 40 labels where 1 may count"),
    ):
        check_source(open_table)


def test_source_contract_rejects_a_header_that_is_data() -> None:
    quoting = lambda self, names: [Problem("table", f"odd names: {', '.join(names)}.")]  # noqa: E731
    taking = lambda self, names: []  # type: ignore[var-annotated]  # noqa: E731
    for planted, said in ((quoting, "a value is quoted"), (taking, "was taken for a header")):
        with mock.patch.object(Schema, "header_problems", planted), pytest.raises(AssertionError, match=said):
            _check_header_that_is_data(open_table)


@pytest.mark.parametrize("schema", [tables.small(), tables.every_kind(), tables.split_amounts()])
def test_however_few_pairs_are_wanted_the_budgets_together_meet_all_designed_ones(schema: Schema) -> None:
    listed = [pair.name for pair in designed_pairs(schema)]
    plain, hostile = ({name for name in listed if name.startswith("hostile") is kind} for kind in (False, True))
    taken = [{pair.name for pair in _some_pairs(schema, 2, seed=1, turn=(place, 2))} for place in range(2)]
    assert taken[0] | taken[1] == plain
    assert not taken[0] & taken[1]
    assert plain == {pair.name for pair in _some_pairs(schema, len(plain), seed=1, turn=(0, 2))}
    many = {pair.name for pair in _some_pairs(schema, 2 * len(listed), seed=1, turn=(0, 2))}
    assert plain | hostile <= many


def test_a_part_that_is_empty_is_refused() -> None:
    with pytest.raises(UsageError, match="from 0 to 1, got 2"):
        MethodChecks("chooser", [Budget(1.0)], (["voted"],), part=(2, 2))


CHECKS = MethodChecks("chooser", [Budget(1.0), Budget(1.0, 1e-6)], (["voted"], ["age"]), pairs=12)


def test_a_method_with_every_verb_passes_the_contract() -> None:
    with mock.patch.dict(METHODS.built_in, {"chooser": Chooser}):
        check_method(CHECKS)


def test_a_method_with_trees_choices_in_cells_and_scores_passes_the_contract() -> None:
    checks = MethodChecks("grower", [Budget(1.0, 1e-6)], (["voted"], ["age"]), pairs=8)
    with mock.patch.dict(METHODS.built_in, {"grower": Grower}):
        check_method(checks)


@dataclass(frozen=True, slots=True)
class Flat(Independent):
    """Asks for the number of rows alone, many times: every code is as likely as any other.

    With one draw of noise in a run, the audit of the noise would need hundreds of runs.
    """

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        parts = cost.split([1.0] * 25)
        steps = tuple(noisy_step("measure total", part, 1, facts.unit_rows) for part in parts)
        return Plan(self, cost, sum(parts, Cost()), steps, 1, 64, 0.1, schedule=parts, fixed=True)

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        answers = [curator.measure([Clique()], part)[0] for part in plan.schedule]
        total = sum(float(answer.values[0]) for answer in answers) / len(answers)
        return BlockModel.uniform(curator.domain, curator.structural_zeros, max(0.0, total))


def test_a_method_that_promises_no_distribution_passes_the_contract() -> None:
    """With nothing to keep there is no error to improve, and no column in which unreadable values could show."""
    checks = MethodChecks("flat", [Budget(1.0)], keeps=(), pairs=1)
    with mock.patch.dict(METHODS.built_in, {"flat": Flat}):
        check_method(checks)
        with pytest.raises(AssertionError, match=r"method flat at ε = 100000 on .*: total variation of age is"):
            replace(checks, keeps=(["age"],)).recovers_at_a_huge_budget()


@dataclass(frozen=True, slots=True)
class Thrifty(Independent):
    """Leaves half of the budget unused."""

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        return Independent.run(self, curator, replace(plan, granted=plan.granted.share(0.5)))


@dataclass(frozen=True, slots=True)
class Uniform(Independent):
    """Spends, and ignores what it learned."""

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        model = Independent.run(self, curator, plan)
        return BlockModel.uniform(model.domain, curator.structural_zeros, model.total)


@dataclass(frozen=True, slots=True)
class Lawless(Independent):
    """Forgets the rules."""

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        model = Independent.run(self, curator, plan)
        parts = {
            model.domain.clique([name]): model.marginal(model.domain.clique([name])) for name in model.domain.columns
        }
        return BlockModel.of_marginals(model.domain, parts, (), model.total)


@pytest.mark.parametrize(
    ("wrong", "check", "said"),
    [
        (Thrifty, "budget_is_kept", "ε = 1 on registered, voted, age: 50% of the budget is used. Split the whole"),
        (Uniform, "recovers_at_a_huge_budget", "total variation of .* where noise hardly counts. Measure and fit"),
        (Uniform, "improves_with_the_budget", "the error is .* at ε = 0.05 and .* at ε = 5. Fit the noisy answers"),
        (Lawless, "honours_rules_and_schema", "rows break a rule on registered × voted. Fit the model under"),
    ],
)
def test_method_contract_rejects(wrong: type[Independent], check: str, said: str) -> None:
    checks = replace(CHECKS, method="independent")
    expected = pytest.raises(AssertionError, match=f"method independent at .*{said}")
    with mock.patch.dict(METHODS.built_in, {"independent": wrong}), expected:
        getattr(checks, check)()


def test_method_contract_rejects_a_leak() -> None:
    leak = next(bug for bug in LEAKS if bug.name == "counts in the model")
    with leak.plant(), pytest.raises(AssertionError, match="released bytes differ"):
        replace(CHECKS, method="independent").replays_on_neighbours()


def test_method_contract_rejects_a_leak_of_copies_measured_anew_however_few_pairs_there_are() -> None:
    fit = pipeline._fit

    def leaking(curator: Curator, design: Design, fixed: pipeline._FixedRun) -> Fitted:
        fitted = fit(curator, design, fixed)
        if design.runs == 1:
            return fitted
        rows = float(curator._bound().counts([Clique()])[Clique()][0])
        return replace(fitted, model=replace(fitted.model, total=rows))  # type: ignore[type-var]

    with mock.patch.object(pipeline, "_fit", leaking), pytest.raises(AssertionError, match="released bytes differ"):
        replace(CHECKS, method="independent", pairs=1).replays_on_neighbours()


def test_method_contract_rejects_runs_that_are_refused() -> None:
    refused = mock.patch.object(Independent, "run", side_effect=UsageError("run", "is refused."))
    with refused, pytest.raises(AssertionError, match="the run was refused"):
        replace(CHECKS, method="independent").replays_on_neighbours()


def test_method_contract_rejects_a_source_that_changes_the_answer() -> None:
    checks = replace(CHECKS, method="independent")
    path = "understudy.counts.readers.StreamedTable.batches"
    with mock.patch(path, side_effect=AssertionError("files are read")), pytest.raises(AssertionError):
        checks.agrees_through_every_source()


@pytest.mark.parametrize("place", PLACES)
def test_method_contract_opens_every_place(place: str) -> None:
    """Of each place in turn half of the rows are lost, and that place is named."""
    lossy = {**PLACES, place: lambda table, folder: PLACES[place](table.slice(30), folder)}
    checks = replace(CHECKS, method="independent", budgets=[Budget(1.0)], places=lossy)
    with pytest.raises(AssertionError, match=f"{place}: the source changed the release"):
        checks.agrees_through_every_source()


@pytest.mark.parametrize("bug", ["noise reused", "half of what was asked for"])
def test_method_contract_rejects_noise_that_is_not_what_was_asked_for(bug: str) -> None:
    checks = replace(CHECKS, method="independent", budgets=[Budget(1.0)])
    halved = patched(
        secure, "_noisy", lambda distribution, exact: exact + discrete_laplace(exact.size, distribution.parameter / 2)
    )
    plant = next((known.plant for known in BLUNDERS if known.name == bug), halved)
    with plant(), pytest.raises(Leak, match="the noise"):
        checks.noise_follows_its_distribution()
