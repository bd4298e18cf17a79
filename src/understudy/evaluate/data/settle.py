"""Codes for a schema that leaves labels or bins open, when no release has settled them.

Labels and bins are then taken from the real table. That is no leak here: a comparison is confidential anyway. With or
without a release, the codec is one for judging: what the schema cannot read has a code of its own.
"""

import numpy as np

from understudy.codec.axis import axis_of
from understudy.codec.table_codec import TableCodec
from understudy.counts.source import PrivateTable
from understudy.evaluate.data.numbers import read_numbers
from understudy.schema import OpenCategory, PrivateBins, Schema
from understudy.schema.column import NumberColumn

__all__ = ["judging_codec", "settled_codec"]


def judging_codec(released: TableCodec) -> TableCodec:
    """The codec by which a release is judged: its labels and bins, and every rare label by itself."""
    return TableCodec.of(released.schema, released.labels, released.edges, judging=True)


def settled_codec(real: PrivateTable, schema: Schema) -> TableCodec:
    """The codec of a schema; what it leaves open (labels, private bins) is taken from the real table."""
    labels = {column.name: _labels(real, column) for column in schema.modelled if isinstance(column, OpenCategory)}
    edges = {
        column.name: _edges(real, column)
        for column in schema.modelled
        if isinstance(column, NumberColumn) and isinstance(column.bins, PrivateBins)
    }
    return TableCodec.of(schema, labels, edges, judging=True)


def _labels(real: PrivateTable, column: OpenCategory) -> list[str]:
    found = real.label_counts(column.name)
    order = np.lexsort((np.asarray(found.labels, dtype=object), -found.counts))
    return sorted(found.labels[place] for place in order[: column.most_labels].tolist())


def _edges(real: PrivateTable, column: NumberColumn) -> list[int] | list[float]:
    """Quantiles of the real numbers, as many as the schema allows bins, between the public bounds."""
    assert isinstance(column.bins, PrivateBins)
    axis = axis_of(column)
    numbers = np.concatenate(
        [np.empty(0), *(read_numbers(column, batch[column.name])[0] for _, batch in real.batches([column.name]))]
    )
    known = numbers[~np.isnan(numbers)]
    shares = np.linspace(0, 1, column.bins.count + 1)[1:-1]
    inner = np.quantile(known, shares, method="inverted_cdf") if len(known) else np.empty(0)
    places = [place for place in np.unique(inner).tolist() if axis.lower < place < axis.upper]
    if isinstance(axis.lower, float):
        return [axis.lower, *places, axis.upper]
    return [int(axis.lower), *(int(place) for place in places), int(axis.upper) + 1]
