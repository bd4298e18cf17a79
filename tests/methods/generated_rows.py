"""The challenge's specification, if it lies beside the checkout, and rows made up from it."""

import json

import numpy as np

from tests.real.shared_tables import FOLDER
from understudy.codec.table import TableCodec
from understudy.methods.match_three import match3_schema, match3_tables

SPECIFICATION = FOLDER / "nist2018_match3_specs" / "domain.json"


def challenge_schema():
    return match3_schema(json.loads(SPECIFICATION.read_text(encoding="utf-8"))["columns"])


def challenge_rows(schema, rows, seed=1):
    """Skewed columns, each following a neighbour in the preset's tree three times out of four."""
    rng = np.random.default_rng(seed)
    codec = TableCodec.of(schema)
    codes: dict[str, np.ndarray] = {}
    for name, size in codec.domain.sizes.items():
        own = np.minimum((size * rng.random(rows) ** (1 + 2 * np.log10(size))).astype(np.int64), size - 1)
        near = [other for edge in match3_tables()["tree"] if name in edge for other in edge if other in codes]
        codes[name] = np.where(rng.random(rows) < 0.75, codes[near[0]] % size, own) if near else own
    return codec.decode(codes, rng)
