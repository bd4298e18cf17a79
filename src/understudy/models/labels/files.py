"""The file form of a label model: `model.json` and raw arrays, checked before use.

Of a tree only the splits are written: where children stand follows from them. All lengths are stated in the document
or follow from the domain, so that every array can be checked before it is cut into pieces.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.arrays import ModelFiles, read_model_files, write_model_files
from understudy.models.labels.chain import LabelChain
from understudy.models.labels.ensemble import Ensemble
from understudy.models.labels.tree import Attributes, DecisionTree

if TYPE_CHECKING:
    from understudy.models.labels.label_model import LabelModel

__all__ = ["read_label_model", "save_label_model"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Parts = tuple[LabelChain, Ints, Floats, float, npt.NDArray[np.bool_]]

_WHOLE, _REAL = np.dtype("<i8"), np.dtype("<f8")
_ARRAYS: Mapping[str, np.dtype[np.generic]] = {
    "cells": _WHOLE, "probabilities": _REAL, "splits": _WHOLE, "groups": _WHOLE, "tables": _REAL, "forbidden": _WHOLE,
    "kept": _WHOLE,
}  # fmt: skip
MOST_RULE_CELLS = 2**31
"""Most cells of a rule's table."""


def save_label_model(model: "LabelModel", folder: Path) -> None:
    """Writes the model into an existing empty folder."""
    chain = model.chain
    trees = [tree for ensemble in chain.ensembles for tree in ensemble.trees]
    document = {
        "kind": model.kind,
        "total": model.total,
        "domain": [[name, size] for name, size in chain.domain.sizes.items()],
        "ensembles": [
            {
                "label": ensemble.label,
                "columns": list(ensemble.attributes.names),
                "trees": [int(tree.splits.size) for tree in ensemble.trees],
            }
            for ensemble in chain.ensembles
        ],
        "rules": [{"columns": list(rule.clique), "cells": int(rule.mask.sum())} for rule in chain.forbidden],
    }
    arrays = {
        "cells": model.cells,
        "probabilities": model.probabilities,
        "splits": _joined([tree.splits for tree in trees], _WHOLE),
        "groups": _joined([group for one in chain.ensembles for group in one.attributes.groups], _WHOLE),
        "tables": _joined([table.ravel() for one in chain.ensembles for table in one.tables], _REAL),
        "forbidden": _joined([np.flatnonzero(rule.mask) for rule in chain.forbidden], _WHOLE),
        "kept": np.flatnonzero(model.kept).astype(np.int64),
    }
    write_model_files(folder, ModelFiles(document, arrays))


def read_label_model(folder: Path, kind: str) -> Parts:
    """The parts of a saved model; the model itself checks how they fit together.

    Raises:
        ReleaseError: if a file is missing, altered, too large or of the wrong type.
    """
    files = read_model_files(folder, kind, _ARRAYS)
    domain = files.domain()
    takers = {name: _Taker(name, array) for name, array in files.arrays.items()}
    ensembles = tuple(_ensemble(entry, domain, takers) for entry in _entries(files.document, "ensembles"))
    rules = tuple(_rule(entry, domain, takers["forbidden"]) for entry in _entries(files.document, "rules"))
    for name in ("splits", "groups", "tables", "forbidden"):
        takers[name].check_used_up()
    chain = LabelChain(domain, ensembles, rules)
    faults = chain.faults()
    if faults:
        raise ReleaseError([Problem("model", fault) for fault in faults])
    named = files.arrays["kept"].astype(np.int64, copy=False)
    if named.size and (named.min() < 0 or named.max() >= chain.combinations):
        raise _refusal("kept", "must name combinations of private codes.")
    kept = np.zeros(chain.combinations, dtype=bool)
    kept[named] = True
    cells = files.arrays["cells"].astype(np.int64, copy=False)
    return chain, cells, files.arrays["probabilities"].astype(np.float64, copy=False), files.number("total"), kept


class _Taker:
    """Cuts pieces of stated length off an array, front to back."""

    def __init__(self, name: str, array: npt.NDArray[np.generic]) -> None:
        self._name = name
        self._array = array
        self._done = 0

    def take(self, length: int) -> npt.NDArray[np.generic]:
        if length > self._array.size - self._done:
            raise _refusal(self._name, "the array is shorter than the document says.")
        self._done += length
        return self._array[self._done - length : self._done]

    def check_used_up(self) -> None:
        if self._done != self._array.size:
            raise _refusal(self._name, "the array is longer than the document says.")


def _ensemble(entry: Mapping[str, object], domain: Domain, takers: Mapping[str, _Taker]) -> Ensemble:
    label, names, nodes = entry.get("label"), _columns(entry, domain), entry.get("trees")
    if not isinstance(label, str) or label not in domain.sizes:
        raise _refusal("ensembles", "each needs `label`, a column of the domain.")
    if not isinstance(nodes, list) or not nodes or any(type(count) is not int or count < 1 for count in nodes):
        raise _refusal("ensembles", "each needs `trees`, a list of numbers of nodes.")
    groups = tuple(takers["groups"].take(domain.sizes[name]).astype(np.int64, copy=False) for name in names)
    attributes = Attributes(names, groups)
    faults = attributes.faults(domain.sizes)
    if faults:
        raise ReleaseError([Problem("model", fault) for fault in faults])
    trees, tables = [], []
    for count in nodes:
        tree = DecisionTree(takers["splits"].take(count).astype(np.int64, copy=False), attributes.fan_outs)
        faults = tree.faults()
        if faults:
            raise ReleaseError([Problem("model", fault) for fault in faults])
        size = domain.sizes[label]
        trees.append(tree)
        tables.append(takers["tables"].take(tree.leaves * size).astype(np.float64, copy=False).reshape(-1, size))
    return Ensemble(label, attributes, tuple(trees), tuple(tables))


def _rule(entry: Mapping[str, object], domain: Domain, taker: _Taker) -> Forbidden:
    names, count = _columns(entry, domain), entry.get("cells")
    size = domain.cells(names)
    if type(count) is not int or not 0 <= count <= size <= MOST_RULE_CELLS or domain.clique(names) != names:
        raise _refusal("rules", "each needs `columns` in the order of the domain and `cells`, a number of cells.")
    cells = taker.take(count).astype(np.int64, copy=False)
    if count and (cells.min() < 0 or cells.max() >= size):
        raise _refusal("rules", "cells must lie inside the rule's table.")
    mask = np.zeros(size, dtype=bool)
    mask[cells] = True
    return Forbidden(Clique(names), mask)


def _columns(entry: Mapping[str, object], domain: Domain) -> tuple[str, ...]:
    names = entry.get("columns")
    if not isinstance(names, list) or not all(isinstance(name, str) and name in domain.sizes for name in names):
        raise _refusal("columns", "must be a list of columns of the domain.")
    return tuple(names)


def _entries(document: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    entries = document.get(key)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _refusal(key, "must be a list of objects.")
    return entries


def _joined(parts: Sequence[npt.NDArray[np.generic]], dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts]).astype(dtype, copy=False)


def _refusal(key: str, rule: str) -> ReleaseError:
    return ReleaseError([Problem(f"model.json: {key}", rule)])
