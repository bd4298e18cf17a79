"""Names → mechanisms: the built-in ones and those that other packages offer as entry points.

Another package adds a method by an entry point in the group `understudy.methods` that points to a class with the
shape of `Method`. A built-in name cannot be taken over: what a steward was told about `laplace` stays true.
"""

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from understudy.errors import UsageError, nearest
from understudy.methods.aim import Aim
from understudy.methods.auto import Auto
from understudy.methods.dpsyn import DpSyn
from understudy.methods.dpwgan import DpWgan
from understudy.methods.fieldgroups import FieldGroups
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.method import Method, Option, PublicFacts, described, hints_of, read_options
from understudy.methods.mst import Mst
from understudy.methods.mwem import Mwem
from understudy.methods.nist_mst import NistMst
from understudy.methods.pfr import Pfr
from understudy.methods.privbayes import PrivBayes
from understudy.methods.privsyn import PrivSyn
from understudy.methods.random_partition import RandomPartition
from understudy.methods.rdt import Rdt
from understudy.methods.steps import Steps
from understudy.methods.universal_histogram import UniversalHistogram
from understudy.privacy.cost import Budget, Cost, Currency
from understudy.schema import OpenCategory, Schema

GROUP = "understudy.methods"
_BUILT_IN: dict[str, type[Method]] = {
    kind.name: kind
    for kind in (
        Aim,
        Auto,
        DpSyn,
        DpWgan,
        Independent,
        Laplace,
        Mst,
        Mwem,
        NistMst,
        FieldGroups,
        Pfr,
        PrivBayes,
        PrivSyn,
        RandomPartition,
        Rdt,
        Steps,
        UniversalHistogram,
    )
}
_GUARANTEES: dict[Currency, str] = {"pure": "ε (pure, δ = 0)", "zcdp": "(ε, δ) through ρ-zCDP"}


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """What a person needs to know to pick a method."""

    name: str
    summary: str
    guarantee: str
    currencies: tuple[Currency, ...]
    needs: str
    limits: str
    source: str
    options: tuple[Option, ...]


def names() -> tuple[str, ...]:
    """All method names, in alphabetical order."""
    return tuple(sorted({*_BUILT_IN, *_offered()}))


def method_named(name: str, options: Mapping[str, object] | None = None) -> Method:
    """The method of that name with these options; text values are read by the type of the option.

    Raises:
        UsageError: for an unknown method or option, with the closest known one, or a value that does not fit.
    """
    kind = _kind(name)
    return kind(**read_options(f"method {name}", _hints(kind), options or {}))


def resolve(method: Method, facts: PublicFacts, cost: Cost) -> Method:
    """The method itself, or the one that `auto` picks for these facts: what a plan shows is then what runs."""
    return method.pick(facts, cost) if isinstance(method, Auto) else method


def uses_public(method: Method) -> bool:
    """Whether the method can use a public table: its class says so with `uses_public = True`."""
    return bool(getattr(method, "uses_public", False))


def spends_delta(method: Method | type[Method]) -> bool:
    """Whether the method pays in ε and δ by itself (training does): its class says so with `spends_delta = True`."""
    return bool(getattr(method, "spends_delta", False))


def keeps_checkpoints(method: Method) -> bool:
    """Whether an interrupted run of the method can be continued: its class says so with `keeps_checkpoints = True`.

    Only for methods whose one question is a training: answers to other questions are not kept.
    """
    return bool(getattr(method, "keeps_checkpoints", False))


def pure_share(method: Method) -> Fraction:
    """The share of ε that a run with δ keeps for steps paid in pure ε: the method says so with `pure_share`."""
    return Fraction(getattr(method, "pure_share", 0))


def describe(name: str) -> Description:
    """Guarantee, needs, limits, source and options of a method."""
    kind = _kind(name)
    options = described(kind, _fields(kind))
    guarantee = " or ".join(_GUARANTEES[currency] for currency in kind.currencies)
    guarantee = "(ε, δ) through Rényi divergences" if spends_delta(kind) else guarantee
    return Description(name, kind.summary, guarantee, kind.currencies, kind.needs, kind.limits, kind.source, options)


def currency_for(method: Method, budget: Budget, schema: Schema | None = None) -> Currency:
    """The currency of a run: pure for δ = 0, concentrated for δ > 0 where the method supports it.

    A method that is pure only takes δ > 0 just for discovering open categories of the schema, or because it pays in ε
    and δ by itself: both add up, so such a run is kept in the pure currency too.

    Raises:
        UsageError: if the method cannot use the δ it is given, or needs one and has none.
    """
    if budget.delta_units == 0:
        if "pure" not in method.currencies or spends_delta(method):
            raise UsageError(f"method {method.name}", "needs δ above 0.", "Give delta=, for example 1e-9.")
        return "pure"
    if "zcdp" in method.currencies:
        return "zcdp"
    if spends_delta(method):
        return "pure"
    if schema is None or not any(isinstance(column, OpenCategory) for column in schema.modelled):
        raise UsageError(
            f"method {method.name}", f"gives pure ε, so delta ({budget.delta!r}) would buy nothing.", "Drop delta=."
        )
    return "pure"


def _kind(name: str) -> type[Method]:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    offered = _offered()
    if name not in offered:
        raise UsageError(f"method {name!r}", "is not known.", nearest(name, names()))
    return cast(type[Method], offered[name].load())


def _offered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in _BUILT_IN}


def _fields(kind: type[Method]) -> tuple[dataclasses.Field[object], ...]:
    if not hasattr(kind, "__dataclass_fields__"):
        raise UsageError(f"method {kind.__name__}", "must be a dataclass whose fields are its options.")
    return dataclasses.fields(cast(type[Auto], kind))


def _hints(kind: type[Method]) -> dict[str, object]:
    return hints_of(kind, _fields(kind))
