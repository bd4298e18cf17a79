"""What a public table must hold, and when one is needed."""

import pyarrow as pa
import pytest

from understudy.errors import SchemaError, UsageError
from understudy.privacy.cost import Budget
from understudy.schema import Unit
from understudy.synthesizer import synthesize
from understudy.synthesizer.design import Design, check_without_public, public_schema
from understudy.testing import cases as tables

SMALL = tables.several_rows()


def _design(method, **options):
    return Design.of(SMALL, method, Budget(1.0, 1e-6), options=options)


def test_a_method_for_labels_needs_the_public_columns_only():
    part = public_schema(_design("rdt", private="voted"))
    assert part.names == ("registered", "age")
    assert part.unit == Unit()
    assert part.rules == ()


def test_other_methods_need_all_columns():
    whole = public_schema(_design("aim"))
    assert whole.names == SMALL.names
    assert whole.unit == Unit()


def test_every_column_private_leaves_nothing_to_tell():
    with pytest.raises(UsageError, match="nothing to add"):
        public_schema(_design("rdt", private="voted,age,registered"))


def test_what_cannot_do_without_says_so_before_anything_is_charged():
    check_without_public(_design("rdt"))
    check_without_public(_design("mst"))
    with pytest.raises(UsageError, match="public"):
        check_without_public(_design("rdt", private="voted", collapse="age:5"))


def test_a_public_table_that_lacks_a_public_column_is_refused():
    rows = tables.some_rows(tables.small(), 20, seed=1)
    with pytest.raises(SchemaError, match="age"):
        synthesize(
            rows,
            tables.small(),
            method="rdt",
            epsilon=1.0,
            options={"private": "voted"},
            public=pa.table({"registered": ["yes"]}),
        )
