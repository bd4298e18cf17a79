"""Saving and loading any kind of model: the document names its kind, the kind names the class.

Never pickle. Another package adds a kind by an entry point of that name in the group `understudy.models`; an unknown
kind is refused with the known ones. Some classes bring a compiler, so that only their own models pay for it.
"""

from pathlib import Path

from understudy.errors import Problem, ReleaseError, UsageError, nearest
from understudy.models.model import DOCUMENT, Model, read_document
from understudy.registry import Registry

MODELS: Registry[Model] = Registry(
    "model",
    {
        "bayesian_network": "understudy.models.bayes_net:BayesianNetwork",
        "blocks": "understudy.models.product:BlockModel",
        "expanded_field": "understudy.models.markov_field:ExpandedField",
        "labels": "understudy.models.label_trees:LabelModel",
        "markov_field": "understudy.models.markov_field:MarkovField",
        "mixture": "understudy.models.mixture:MixtureModel",
        "records": "understudy.models.records:RecordModel",
        "tree": "understudy.models.histogram_tree:TreeModel",
    },
)


def register(model: type[Model]) -> None:
    """Makes a class known under its `kind` in this process, so that `load_model` can find it; a taken kind raises."""
    MODELS.register(model.kind, model)


def save_model(model: Model, folder: Path) -> None:
    """Writes the model into `folder`, which is created if missing and must otherwise be empty."""
    if model.kind not in MODELS.names() or MODELS.find(model.kind) is not type(model):
        raise UsageError(f"model kind {model.kind!r}", "is not registered, so it could not be loaded again.")
    folder.mkdir(exist_ok=True)
    model.save(folder)


def load_model(folder: Path) -> Model:
    """The model saved in `folder`, every file checked before use.

    Raises:
        ReleaseError: if the folder is incomplete, altered or of an unknown kind.
    """
    kind = read_document(folder).get("kind")
    if not isinstance(kind, str) or kind not in MODELS.names():
        hint = nearest(kind if isinstance(kind, str) else "", MODELS.names())
        raise ReleaseError([Problem(f"{DOCUMENT}: kind", "is not a kind of model known here.", hint)])
    return MODELS.find(kind).load(folder)
