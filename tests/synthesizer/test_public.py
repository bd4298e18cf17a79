"""A public table goes along free of charge, to methods that use one and to no others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from unittest import mock

import pytest

from understudy.arrays import Ints
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.methods.independent import Independent
from understudy.methods.method import METHODS, Plan
from understudy.models.product import BlockModel
from understudy.privacy.curator import Curator
from understudy.synthesizer import synthesize
from understudy.testing import cases as tables

SEEN: list[Mapping[Clique, Ints]] = []


@dataclass(frozen=True, slots=True)
class Looking(Independent):
    """Looks at the public table and then does as `independent`."""

    uses_public: ClassVar[bool] = True

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        if curator.has_public:
            SEEN.append(curator.public_counts([Clique(), curator.domain.clique(["age"])]))
        return Independent.run(self, curator, plan)


def test_a_method_that_uses_one_sees_exact_public_counts_at_no_cost() -> None:
    schema = tables.several_rows()
    private, public = tables.some_rows(schema, 30, seed=1), tables.some_rows(tables.small(), 17, seed=2)
    SEEN.clear()
    with mock.patch.dict(METHODS.built_in, {"independent": Looking}):
        release = synthesize(private, schema, method="independent", epsilon=1.0, public=public)
        synthesize(private, schema, method="independent", epsilon=1.0)
    (counts,) = SEEN
    assert counts[Clique()].tolist() == [17]
    assert sum(counts[Clique(["age"])]) == 17
    assert release.statement.epsilon == pytest.approx(1.0)
    assert [charge.step for charge in release.statement.charges] == [
        "measure registered", "measure voted", "measure age"
    ]  # fmt: skip


def test_other_methods_refuse_one_before_anything_is_charged() -> None:
    schema = tables.small()
    table = tables.some_rows(schema, 5, seed=1)
    with pytest.raises(UsageError, match="does not use a public table"):
        synthesize(table, schema, method="laplace", epsilon=1.0, public=table)


def test_the_door_has_no_public_counts_without_a_public_table() -> None:
    schema = tables.small()
    with (
        mock.patch.dict(METHODS.built_in, {"independent": Looking}),
        mock.patch.object(Curator, "has_public", property(lambda _: True)),
        pytest.raises(UsageError, match="none was given"),
    ):
        synthesize(tables.some_rows(schema, 5, seed=1), schema, method="independent", epsilon=1.0)
