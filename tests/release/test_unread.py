"""What is told about unreadable values, and what is drawn of them, by noisy answers alone."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from understudy.codec.table import TableCodec
from understudy.domain import Course, Distribution, Measurement, SparseMeasurement, Trained, Transcript
from understudy.errors import ResourceError, UsageError
from understudy.models.model import Codes, Model
from understudy.models.records import RecordModel
from understudy.release.release import Fitted, draw_tables
from understudy.release.wording import Odd, given_readable, never_unreadable, odd_values, readable_codes
from understudy.schema import Boolean, Category, Integer, OpenCategory, Schema, UniformBins, Unit

SCHEMA = Schema(
    columns=(
        Category(name="sex", labels=("F", "M"), missing=False),
        Category(name="town", labels=("a", "b"), other="else"),
        Integer(name="age", lower=0, upper=99, bins=UniformBins(2)),
        Boolean(name="voted", missing=False),
    ),
    unit=Unit(),
)
CODEC = TableCodec.of(SCHEMA)
GAUSSIAN = Distribution("gaussian", Fraction(100))
LAPLACE = Distribution("laplace", Fraction(10))


def records(**codes: list[int]) -> RecordModel:
    """Records with these codes, 0 where nothing is said."""
    rows = len(next(iter(codes.values())))
    return RecordModel(
        CODEC.domain,
        {name: np.array(codes.get(name, [0] * rows), dtype=np.uint8) for name in CODEC.domain.columns},
        float(rows),
    )


def table(columns: tuple[str, ...], values: object, distribution: Distribution = GAUSSIAN) -> Measurement:
    shape = CODEC.domain.shape(columns)
    return Measurement(" × ".join(columns), columns, shape, np.asarray(values, dtype=np.int64).ravel(), distribution)


MODEL = records(sex=[0] * 500 + [1] * 490 + [2] * 10, voted=[0] * 1000)


@pytest.mark.parametrize(
    ("distribution", "count", "clear"),
    [(GAUSSIAN, 41, True), (GAUSSIAN, 39, False), (LAPLACE, 98, True), (LAPLACE, 95, False)],
)
def test_a_count_is_clear_beyond_what_noise_explains(distribution: Distribution, count: int, clear: bool) -> None:
    """σ = 10: above 40. Laplace with b = 10: above 4·(14.1 + 10) = 96.6."""
    told = Transcript([table(("sex",), [500, 490, count], distribution)])
    readable = readable_codes(CODEC, told, MODEL)
    assert ("sex" not in readable) == clear
    expected = (Odd("sex", "unreadable", count / 1000, labelled=True),) if clear else ()
    assert odd_values(CODEC, told, MODEL) == expected


def test_tables_are_combined_by_their_variances() -> None:
    """One cell beside a slice of four: weights 4 and 1."""
    pair = np.zeros((3, 4), dtype=np.int64)
    pair[2] = [20, 20, 20, 0]
    both = Transcript([table(("sex",), [0, 0, 36]), table(("sex", "town"), pair)])
    estimate = (4 * 36 + 60) / 5
    limit = 4 * (100 / (1 + 1 / 4)) ** 0.5
    assert estimate > limit
    assert "sex" not in readable_codes(CODEC, both, MODEL)
    assert "sex" in readable_codes(CODEC, Transcript(both.answers[:1]), MODEL)
    assert "sex" in readable_codes(CODEC, Transcript(both.answers[1:]), MODEL)


def test_answers_about_something_else_do_not_count() -> None:
    """A partition whose cells happen to be as many as the codes, and a table over other codes."""
    leaves = Measurement("leaves", ("sex",), (3,), np.array([0, 0, 900]), GAUSSIAN)
    finer = Measurement("sex", ("sex",), (4,), np.array([0, 0, 0, 900]), GAUSSIAN)
    assert "sex" in readable_codes(CODEC, Transcript([leaves, finer]), MODEL)
    assert odd_values(CODEC, Transcript([leaves, finer]), MODEL) == ()


def test_without_a_table_the_models_share_must_exceed_what_noise_explains() -> None:
    """Twelve cells with σ = 10, four of them for each code: 10·(0.4·4 + 4·2) = 96 rows."""
    leaves = Transcript([Measurement("leaves", ("sex", "age"), (12,), np.zeros(12, dtype=np.int64), GAUSSIAN)])
    assert "sex" in readable_codes(CODEC, leaves, records(sex=[0] * 905 + [2] * 95))
    assert "sex" not in readable_codes(CODEC, leaves, records(sex=[0] * 903 + [2] * 97))
    many = records(sex=[0] * 19_040 + [2] * 960)
    assert "sex" in readable_codes(CODEC, leaves, many)  # below 5 % it is not looked for
    assert "sex" in readable_codes(CODEC, Transcript(), records(sex=[2] * 100))  # nothing was asked


def test_the_first_look_of_a_training_is_a_table_of_every_column() -> None:
    counts = [500, 440, 60] + [250] * 4 + [300, 300, 400] + [1000, 0, 10]
    course = Course(2**10, 10, Fraction(5), Fraction(1, 10))
    look = Trained(
        "course", course, 7 * np.array(counts, dtype=np.int64), Distribution("gaussian", Fraction(70**2)), GAUSSIAN
    )
    assert set(readable_codes(CODEC, Transcript([look]), MODEL)) == {"voted"}
    assert odd_values(CODEC, Transcript([look]), MODEL) == (Odd("sex", "unreadable", 0.06, labelled=True),)


def test_of_a_sparse_table_four_kept_cells_may_be_noise() -> None:
    kept = SparseMeasurement("sex × age", ("sex", "age"), (3, 3), np.zeros(0, int), np.zeros(0, int), LAPLACE, 20)
    assert "sex" in readable_codes(CODEC, Transcript([kept]), records(sex=[0] * 921 + [2] * 79))
    assert "sex" not in readable_codes(CODEC, Transcript([kept]), records(sex=[0] * 919 + [2] * 81))


def test_missing_and_other_are_named_when_they_are_most_of_a_column() -> None:
    told = Transcript([table(("town",), [10, 20, 960, 10]), table(("age",), [10, 40, 950])])
    model = records(sex=[0] * 1000)
    assert [(one.column, one.meaning) for one in odd_values(CODEC, told, model)] == [
        ("town", "other"),
        ("age", "missing"),
    ]
    texts = [one.text for one in odd_values(CODEC, told, model)]
    assert (
        texts[0]
        == "town: about 96 % of its values are not in its list of labels; are its labels spelled as in the file?"
    )
    assert texts[1].endswith("the schema says (`format`, `decimal`, `thousands`)?")
    fewer = Transcript([table(("town",), [300, 260, 430, 10]), table(("age",), [310, 240, 450])])
    assert odd_values(CODEC, fewer, model) == ()


def test_an_open_category_that_is_mostly_other_is_told_as_rare_not_as_unread() -> None:
    codec = TableCodec.of(Schema(columns=(OpenCategory(name="job"),), unit=Unit()), {"job": ["cook"]})
    answer = Measurement("job", ("job",), (3,), np.array([20, 980, 0]), GAUSSIAN)
    model = RecordModel(codec.domain, {"job": np.array([1] * 1000, dtype=np.uint8)}, 1000.0)
    (odd,) = odd_values(codec, Transcript([answer]), model)
    assert odd == Odd("job", "rare", 0.98, True, bin="other")
    assert odd.text == "job: about 98 % of its values are other: other labels were too rare to stand out of the noise."


def test_rows_are_drawn_readable_unless_the_count_is_clear() -> None:
    unclear = Fitted(CODEC, Transcript([table(("sex",), [500, 490, 10])]), MODEL)
    clear = Fitted(CODEC, Transcript([table(("sex",), [500, 440, 60])]), MODEL)
    drawn = [next(iter(draw_tables(one, 1000, seed=4))).column("sex").to_pylist() for one in (unclear, clear)]
    assert drawn[0].count(None) == 0
    assert drawn[1].count(None) == 10
    # Records that can be read stay as they are: each once, and ten of them twice.
    assert sorted((drawn[0].count("F"), drawn[0].count("M"))) == pytest.approx([495, 505], abs=10)
    assert never_unreadable(CODEC, unclear.transcript, MODEL) == {"sex", "voted"}
    assert never_unreadable(CODEC, clear.transcript, MODEL) == {"voted"}
    wanted = next(iter(draw_tables(clear, 50, seed=4, where={"sex": "unreadable"})))
    assert wanted.column("sex").null_count == 50
    with pytest.raises(UsageError, match="the noisy answers show none beyond their noise"):
        draw_tables(unclear, 50, seed=4, where={"sex": "unreadable"})


def test_where_nothing_can_be_read_rows_are_drawn_as_they_are() -> None:
    lost = records(sex=[2] * 20)
    fitted = Fitted(CODEC, Transcript([table(("sex",), [0, 0, 20])]), lost)
    assert next(iter(draw_tables(fitted, 20, seed=1))).column("sex").null_count == 20
    assert never_unreadable(CODEC, fitted.transcript, lost) == frozenset()


@dataclass(frozen=True)
class Tangled:
    """A model that cannot be conditioned."""

    inner: Model

    def condition(self, where: object) -> Model:
        raise ResourceError("condition on a network", 2, 1, "Draw rows.")

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        return self.inner.draw(rows, rng)


def test_rows_are_drawn_again_where_a_model_cannot_be_conditioned() -> None:
    tangled = Tangled(MODEL)
    readable = readable_codes(CODEC, Transcript(), MODEL)
    drawn = given_readable(tangled, readable, {}).draw(5000, np.random.default_rng(1))  # type: ignore[arg-type]
    assert set(drawn["sex"].tolist()) == {0, 1}
    with pytest.raises(ResourceError):
        given_readable(tangled, readable, {"sex": np.array([0])})  # type: ignore[arg-type]


def test_a_codec_of_the_first_format_draws_as_it_always_did() -> None:
    old = TableCodec.from_json(SCHEMA, {"labels": {}, "edges": {}})
    assert old.unreadable_code("sex") is None
    assert readable_codes(old, Transcript(), MODEL) == {}
