"""A release of a training: what the folder says, and what verification refuses."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from understudy.domain import Distribution, Trained, Transcript
from understudy.errors import ReleaseError
from understudy.release import Release
from understudy.release.store import METADATA_KEY, read_measurements, write_measurements
from understudy.release.verify import check_charges
from understudy.synthesizer import synthesize
from understudy.testing import cases as tables

TINY = {"steps": 5, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 0.3}


@pytest.fixture(scope="module")
def release() -> Release:
    schema = tables.small()
    rows = tables.possible_rows(schema, 60, seed=1)
    return synthesize(rows, schema, method="dpwgan", epsilon=1.0, delta=1e-6, options=TINY, seed=1)


def _trained(release):
    (answer,) = release.fits[0].transcript.of(Trained)
    return answer


def _problems(release, answer):
    charge = dataclasses.replace(
        release.statement.charges[0], distribution=answer.distribution, unit=answer.course.clip
    )
    statement = dataclasses.replace(release.statement, charges=(charge,))
    return check_charges(statement, [Transcript([answer])])


def test_an_honest_training_has_the_right_cost(release) -> None:
    assert _problems(release, _trained(release)) == []


def test_quieter_noise_and_longer_courses_are_found(release) -> None:
    answer = _trained(release)
    distribution = Distribution("gaussian", answer.distribution.parameter * Fraction(9, 10))
    first = Distribution("gaussian", answer.first_distribution.parameter * Fraction(9, 10))
    longer = dataclasses.replace(answer.course, steps=answer.course.steps + 1)
    oftener = dataclasses.replace(answer.course, gap=answer.course.gap * Fraction(9, 10))
    larger = dataclasses.replace(answer.course, clip=answer.course.clip + 20)
    changes = [{"distribution": distribution}, {"first_distribution": first}, {"first_distribution": None}]
    changes += [{"course": course} for course in (longer, oftener, larger)]
    for change in changes:
        assert _problems(release, dataclasses.replace(answer, **change)), change


def test_nonsense_is_a_problem_and_not_a_crash(release) -> None:
    answer = _trained(release)
    for course in (
        dataclasses.replace(answer.course, clip=0),
        dataclasses.replace(answer.course, gap=Fraction(0)),
        dataclasses.replace(answer.course, steps=-3),
    ):
        charge = dataclasses.replace(release.statement.charges[0], unit=1)
        statement = dataclasses.replace(release.statement, charges=(charge,))
        assert check_charges(statement, [Transcript([dataclasses.replace(answer, course=course)])])


def test_the_statement_shows_the_noise_per_contribution(release) -> None:
    (charge,) = release.statement.charges
    assert charge.noise == "discrete Gaussian"
    sigma = _trained(release).distribution.scale / _trained(release).course.clip
    assert charge.scale == f"σ = {sigma:.6g}"


def _written(release, path):
    write_measurements(path, [release.fits[0].transcript], [release.codec])
    return path


def test_answers_survive_the_file(release, tmp_path) -> None:
    (found,) = read_measurements(_written(release, tmp_path / "m.parquet"), 1)[0].of(Trained)
    answer = _trained(release)
    assert np.array_equal(found.values, answer.values)
    assert (found.name, found.course, found.first_distribution, found.distribution) == (
        answer.name,
        answer.course,
        answer.first_distribution,
        answer.distribution,
    )


@pytest.mark.parametrize(
    "change", [{"first_law": None}, {"first_law": ["gaussian", "1"]}, {"steps": "5"}, {"gap": "x"}, {"clip": None}]
)
def test_altered_headers_are_refused(release, tmp_path, change) -> None:
    path = _written(release, tmp_path / "m.parquet")
    table = pq.read_table(path)
    headers = json.loads(table.schema.metadata[METADATA_KEY])
    headers[0] |= change
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(headers).encode()}), path)
    with pytest.raises(ReleaseError):
        read_measurements(path, 1)
