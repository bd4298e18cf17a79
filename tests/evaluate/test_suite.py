"""evaluate: releases, folders, frames, files and copies; mistakes found before anything is read."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.evaluate.examples import codes_schema, mixed, mixed_frame, shuffled
from tests.release.people import everything, people, simple
from understudy.errors import SchemaError, UsageError
from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.page import build_report
from understudy.evaluate.propensity import Specks
from understudy.evaluate.regression import IntervalOverlap, Regression
from understudy.evaluate.suite import FITTED, NOTICE, chosen_metrics
from understudy.release.release import Release
from understudy.report import render_page
from understudy.schema import OpenCategory, PrivateBins, Schema, Unit


def test_release_in_either_place(plain_release: Release, plain_folder: Path) -> None:
    first = us.evaluate(people(), plain_release, metrics=["marginals"])
    assert us.evaluate(plain_release, people(), metrics=["marginals"]) == first
    assert us.evaluate(people(), plain_folder, metrics=["marginals"]) == first
    assert (
        us.evaluate(people(), plain_release.table, simple(), metrics=["marginals"])["marginals"] == first["marginals"]
    )
    assert (first.method, first.title, first.real_rows) == ("laplace", "voters", 600)
    assert "ε = 2" in first.promise


def test_every_kind_of_column(full_release: Release) -> None:
    found = us.evaluate(people(), full_release, metrics=["marginals", "specks", "chi2", "disclosure"])
    assert found["marginals"].value is not None
    assert found.columns == tuple(column.name for column in everything().modelled)


def test_columns_in_parts_are_drawn_by_the_names_of_their_parts(full_release: Release) -> None:
    whole = us.evaluate(people(), full_release, metrics=["marginals"])
    names = whole.tables()["pictures.columns"]["column"].unique().to_pylist()
    text = f"{names[-1]},{names[0]}"
    found = us.evaluate(people(), full_release, metrics=["rules"], pairs=[text])
    shown = {chart.caption.rpartition(":")[0] for chart in found.plot(text).charts}
    assert [set(one.split(" × ")) for one in shown] == [{names[0], names[-1]}]


def test_files_frames_and_copies_agree(tmp_path: Path) -> None:
    real, synthetic = mixed_frame(300), mixed_frame(300, seed=2)
    pq.write_table(pa.Table.from_pandas(real, preserve_index=False), tmp_path / "real.parquet")
    real.to_csv(tmp_path / "real.csv", index=False)
    pq.write_table(pa.Table.from_pandas(synthetic, preserve_index=False), tmp_path / "synthetic.parquet")
    wanted = us.evaluate(real, synthetic, mixed(), metrics=["marginals", "specks"])
    for source in (tmp_path / "real.parquet", tmp_path / "real.csv"):
        assert us.evaluate(source, tmp_path / "synthetic.parquet", mixed(), metrics=["marginals", "specks"]) == wanted
    twice = us.evaluate(real, [synthetic, synthetic], mixed(), metrics=["marginals", "specks"])
    assert twice["marginals"].value == pytest.approx(wanted["marginals"].value)
    assert twice.synthetic_rows == (300, 300)


def test_units_are_not_cut() -> None:
    frame = mixed_frame(200)
    frame["person"] = "same"
    bounded = Schema(columns=mixed().columns, unit=Unit(column="person", rows=2))
    assert us.evaluate(frame, mixed_frame(200, seed=2), bounded, metrics=["marginals"]).real_rows == 200


def test_open_ends_are_fixed_from_the_real_table() -> None:
    schema = Schema(
        columns=(
            OpenCategory(name="region", most_labels=2),
            us.schema.Integer(name="age", lower=0, upper=99, bins=PrivateBins(4)),
        ),
        unit=Unit(),
    )
    frame = mixed_frame(300)[["region", "age"]]
    found = us.evaluate(frame, frame, schema, metrics=["marginals"])
    assert found["marginals"].value == 0
    labels = {row["label"] for row in found["marginals"].detail("cells").records()}
    assert {"other", "missing", "north", "south"} <= labels


def test_metrics_with_options() -> None:
    real = mixed_frame(200)
    found = us.evaluate(real, shuffled(real), mixed(), metrics=[Specks(terms="interactions"), "marginals"])
    assert found.metrics == ("specks", "marginals")
    by_name = us.evaluate(
        real, shuffled(real), mixed(), metrics=["specks"], options={"specks": {"terms": "interactions"}}
    )
    assert by_name["specks"] == found["specks"]


def test_mistakes_come_first() -> None:
    nothing = object()  # reading it would raise another error
    with pytest.raises(UsageError, match="needed to read"):
        us.evaluate(nothing, nothing)
    with pytest.raises(UsageError, match="release 'relaese' does not exist"):
        us.evaluate(nothing, "relaese")
    with pytest.raises(UsageError, match="needed to read"):
        us.evaluate(nothing, "people.db::synthetic")
    with pytest.raises(UsageError, match="is not known"):
        us.evaluate(nothing, nothing, mixed(), metrics=["good"])
    with pytest.raises(UsageError, match="metrics is empty"):
        us.evaluate(nothing, nothing, mixed(), metrics=[])
    with pytest.raises(UsageError, match="twice"):
        us.evaluate(nothing, nothing, mixed(), metrics=["rules", "rules"])
    with pytest.raises(UsageError, match="not requested"):
        us.evaluate(nothing, nothing, mixed(), metrics=["rules"], options={"pmse": {}})
    with pytest.raises(UsageError, match="is not a column"):
        us.evaluate(nothing, nothing, mixed(), formula="wage ~ age")
    for given in ({"metrics": ["rules"]}, {"options": {name: {"formula": "age ~ sex"} for name in FITTED}}):
        with pytest.raises(UsageError, match="formula is for regression and ci_overlap"):
            us.evaluate(nothing, nothing, mixed(), formula="age ~ sex", **given)
    with pytest.raises(UsageError, match="modelled column"):
        us.evaluate(nothing, nothing, mixed(), metrics=["slopes"], options={"slopes": {"outcomes": ("wage",)}})
    with pytest.raises(UsageError, match="seed"):
        us.evaluate(nothing, nothing, mixed(), seed=-1)
    with pytest.raises(SchemaError, match="declared in the schema"):
        us.evaluate(mixed_frame(50), mixed_frame(50).drop(columns="sex"), mixed())


def test_a_formula_goes_to_the_metrics_that_fit_models_unless_they_have_one() -> None:
    options = {"regression": {"formula": "age ~ sex"}}
    chosen = {one.name: one for one in chosen_metrics(["regression", "ci_overlap", "rules"], options, "sex ~ age")}
    assert chosen["regression"] == Regression(formula="age ~ sex")
    assert chosen["ci_overlap"] == IntervalOverlap(formula="sex ~ age")


def test_an_empty_real_table_is_refused() -> None:
    frame = mixed_frame(50)
    with pytest.raises(UsageError, match="real table has no rows"):
        us.evaluate(frame[:0], frame, mixed(), metrics=["rules"])
    found = us.evaluate(frame, frame[:0], mixed(), metrics=["rules"])
    assert "no rows" in found["rules"].why_not


def test_schema_of_a_release_is_its_own(plain_release: Release) -> None:
    with pytest.raises(UsageError, match="not the schema of the release"):
        us.evaluate(people(), plain_release, mixed())


def test_module_can_be_called_too() -> None:
    import understudy.evaluate as package

    found = package(mixed_frame(50), mixed_frame(50), mixed(), metrics=["rules"])  # type: ignore[operator]
    assert found.metrics == ("rules",)


def test_progress_reaches_the_end() -> None:
    seen: list[tuple[str, float]] = []

    class Watch:
        def stage(self, name: str, done: float) -> None:
            seen.append((name, done))

    us.evaluate(mixed_frame(100), mixed_frame(100), mixed(), metrics=["marginals", "chi2"], progress=Watch())
    assert seen[0] == ("prepare", 0.0)
    assert seen[-1] == ("measure", 1.0)
    shares = [done for name, done in seen if name == "measure"]
    assert shares == sorted(shares)


NOT_LOADED = """
import sys
from tests.evaluate.examples import mixed, mixed_frame
from understudy.evaluate import evaluate

found = evaluate(mixed_frame(60), mixed_frame(60), mixed(), pictures=False)
assert set(found.left_out) == {"nist", "regression", "ci_overlap", "classifiers"}, found.left_out
assert found.left_out["classifiers"] == "takes long, so it runs only if it is named"
assert list(found.left_out) == [name for name in METRICS.built_in if name in found.left_out]
assert not {"sklearn", "understudy.evaluate.classifiers"} & set(sys.modules)
asked = evaluate(mixed_frame(60), mixed_frame(60), mixed(), formula="sex ~ age", pictures=False)
assert {"regression", "ci_overlap"} <= set(asked.metrics)
"""


def test_what_runs_only_where_it_is_named_is_not_even_loaded() -> None:
    command = [sys.executable, "-c", "from understudy.evaluate.metric import METRICS" + NOT_LOADED]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=300)
    assert run.returncode == 0, run.stderr[-1000:]


def test_metrics_that_lack_something_are_left_out_unless_asked_for() -> None:
    frame = mixed_frame(60)
    found = us.evaluate(frame, shuffled(frame), mixed())
    assert not {"nist", "regression", "ci_overlap"} & set(found.metrics)
    assert found.left_out["nist"] == "the table has no column 'SEX' or 'CITY' or 'INCWAGE'"
    assert not any("has no column" in score.why_not for result in found.results for score in result.scores)
    assert "Left out: nist (the table has no column 'SEX'" in render_page(build_report(found)).replace("&#39;", "'")
    queries = us.evaluate(frame, shuffled(frame), mixed(), metrics=["nist"])
    assert not queries.left_out
    assert "no column 'SEX'" in queries["nist"].score("regression").why_not
    by_option = us.evaluate(frame, shuffled(frame), mixed(), options={"nist": {"include_last": True}})
    assert "nist" in by_option.metrics
    modelled = us.evaluate(frame, shuffled(frame), mixed(), formula="age ~ sex")
    assert {"regression", "ci_overlap"} <= set(modelled.metrics)


def test_columns_too_many_for_the_full_table_are_not_called_good() -> None:
    """Rows that are all different: real halves have nothing in common, and neither has a table of other rows."""
    rng = np.random.default_rng(1)
    real, other = (
        pd.DataFrame({f"c{place}": rng.integers(0, 9, 300).astype(str) for place in range(9)}) for _ in range(2)
    )
    schema = codes_schema(dict.fromkeys(real.columns, 9))
    found = us.evaluate(real, other, schema, metrics=["crosstab_l1"])
    assert found["crosstab_l1"].headline.blind
    assert "as good as fresh" not in render_page(build_report(found))


# Evaluations are plain values: equal for equal seeds, complete as JSON and as tables.


METRICS = ["marginals", "crosstab_l1", "rules"]


@pytest.fixture(scope="module")
def found() -> Evaluation:
    frame = mixed_frame()
    return evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=4)


def test_same_seed_same_numbers(found: Evaluation) -> None:
    frame = mixed_frame()
    assert evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=4) == found
    other = evaluate(frame, shuffled(frame), mixed(), metrics=METRICS, seed=5)
    assert other["marginals"].yardstick != found["marginals"].yardstick
    assert other["marginals"].value == found["marginals"].value


def test_a_metric_does_not_depend_on_the_others(found: Evaluation) -> None:
    frame = mixed_frame()
    alone = evaluate(frame, shuffled(frame), mixed(), metrics=["crosstab_l1"], seed=4)
    assert alone["crosstab_l1"] == found["crosstab_l1"]


def test_json_holds_everything_and_says_what_it_is(found: Evaluation) -> None:
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert next(iter(document)) == "notice"
    assert document["notice"] == NOTICE
    assert [one["metric"] for one in document["metrics"]] == METRICS
    detail = document["metrics"][0]["details"][1]
    assert (detail["name"], detail["rows"], len(detail["first"])) == ("pairs", 15, 15)
    assert len(found.to_json(rows=2)["metrics"][0]["details"][1]["first"]) == 2  # type: ignore[index]


def test_frame_and_tables(found: Evaluation) -> None:
    scores = found.frame().to_pylist()
    assert {row["metric"] for row in scores} == set(METRICS)
    assert set(found.tables()) >= {"scores", "marginals.columns", "marginals.pairs", "marginals.triples", "rules.rules"}
    assert found.metrics == tuple(METRICS)


def test_unknown_metric(found: Evaluation) -> None:
    with pytest.raises(UsageError, match=r"Did you mean \"marginals\""):
        found["marginal"]
