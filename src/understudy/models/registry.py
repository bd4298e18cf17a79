"""Saving and loading any kind of model: the document names its kind, the kind names the class.

Never pickle. Other packages add a kind with `register`; an unknown kind is refused with the known ones.
"""

import importlib
from pathlib import Path

from understudy.errors import Problem, ReleaseError, UsageError, nearest
from understudy.models.model import DOCUMENT, Model, read_document
from understudy.models.product import BlockModel

_KINDS: dict[str, type[Model]] = {BlockModel.kind: BlockModel}
_ON_DEMAND = {
    "markov_field": "understudy.models.markov_field",
    "expanded_field": "understudy.models.markov_field",
    "records": "understudy.models.records",
    "bayesian_network": "understudy.models.bayes_net",
    "labels": "understudy.models.label_trees",
    "tree": "understudy.models.histogram_tree",
    "mixture": "understudy.models.mixture",
}
"""Modules that register a kind when imported; they bring a compiler, so only their own models pay for it."""


def register(model: type[Model]) -> None:
    """Makes a class known under its `kind`, so that `load_model` can find it; a taken kind raises."""
    if _KINDS.setdefault(model.kind, model) is not model:
        raise UsageError(f"model kind {model.kind!r}", "is taken by another class.", "Choose another name.")


def save_model(model: Model, folder: Path) -> None:
    """Writes the model into `folder`, which is created if missing and must otherwise be empty."""
    if _KINDS.get(model.kind) is not type(model):
        raise UsageError(f"model kind {model.kind!r}", "is not registered, so it could not be loaded again.")
    folder.mkdir(exist_ok=True)
    model.save(folder)


def load_model(folder: Path) -> Model:
    """The model saved in `folder`, every file checked before use.

    Raises:
        ReleaseError: if the folder is incomplete, altered or of an unknown kind.
    """
    kind = read_document(folder).get("kind")
    if isinstance(kind, str) and kind in _ON_DEMAND:
        importlib.import_module(_ON_DEMAND[kind])
    if not isinstance(kind, str) or kind not in _KINDS:
        hint = nearest(kind if isinstance(kind, str) else "", {*_KINDS, *_ON_DEMAND})
        raise ReleaseError([Problem(f"{DOCUMENT}: kind", "is not a kind of model known here.", hint)])
    return _KINDS[kind].load(folder)
