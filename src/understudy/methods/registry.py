"""Names → methods, the guarantee of each in words, and the currency a run is paid in.

Another package adds a method by an entry point in the group `understudy.methods` that points to a subclass of `Method`.
"""

import dataclasses
from collections.abc import Mapping

from understudy.errors import UsageError
from understudy.methods.method import Method
from understudy.options import Option, described
from understudy.privacy.cost import Budget, Currency
from understudy.registry import Catalogue, Registry
from understudy.schema import OpenCategory, Schema

METHODS: Registry[Method] = Registry(
    "method",
    {
        "aim": "understudy.methods.aim:Aim",
        "auto": "understudy.methods.auto:Auto",
        "dpsyn": "understudy.methods.dpsyn:DpSyn",
        "dpwgan": "understudy.methods.dpwgan:DpWgan",
        "ensemble": "understudy.methods.ensemble:MixtureEnsemble",
        "fieldgroups": "understudy.methods.fieldgroups:FieldGroups",
        "independent": "understudy.methods.independent:Independent",
        "laplace": "understudy.methods.laplace:Laplace",
        "mst": "understudy.methods.mst:Mst",
        "mwem": "understudy.methods.mwem:Mwem",
        "nist_mst": "understudy.methods.nist_mst:NistMst",
        "pfr": "understudy.methods.pfr:Pfr",
        "privbayes": "understudy.methods.privbayes:PrivBayes",
        "privsyn": "understudy.methods.privsyn:PrivSyn",
        "random_partition": "understudy.methods.random_partition:RandomPartition",
        "rdt": "understudy.methods.rdt:Rdt",
        "steps": "understudy.methods.steps:Steps",
        "universal_histogram": "understudy.methods.universal_histogram:UniversalHistogram",
    },
    (Method,),
)
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
    return tuple(sorted(METHODS.names()))


def methods() -> Catalogue[Description]:
    """All methods with what each does and guarantees; `methods()["aim"]` has needs, limits, source and options too."""
    return Catalogue(("name", "guarantee", "summary"), METHODS.described(describe))


def method_named(name: str, options: Mapping[str, object] | None = None) -> Method:
    """The method of that name with these options; text values are read by the type of the option.

    Raises:
        UsageError: for an unknown method or option, with the closest known one, or a value that does not fit.
    """
    return METHODS.make(name, options)


def describe(name: str) -> Description:
    """Guarantee, needs, limits, source and options of a method."""
    kind = METHODS.find(name)
    guarantee = " or ".join(_GUARANTEES[currency] for currency in kind.currencies)
    guarantee = "(ε, δ) through Rényi divergences" if kind.spends_delta else guarantee
    facts = (kind.currencies, kind.needs, kind.limits, kind.source)
    return Description(name, kind.summary, guarantee, *facts, described(kind))


def currency_for(method: Method, budget: Budget, schema: Schema | None = None) -> Currency:
    """The currency of a run: pure for δ = 0, concentrated for δ > 0 where the method supports it.

    A method that is pure only takes δ > 0 just for discovering open categories of the schema, or because it pays in ε
    and δ by itself: both add up, so such a run is kept in the pure currency too.

    Raises:
        UsageError: if the method cannot use the δ it is given, or needs one and has none.
    """
    if budget.delta_units == 0:
        if "pure" not in method.currencies or method.spends_delta:
            raise UsageError(f"method {method.name}", "needs δ above 0.", "Give delta=, for example 1e-9.")
        return "pure"
    if "zcdp" in method.currencies:
        return "zcdp"
    if method.spends_delta:
        return "pure"
    if schema is None or not any(isinstance(column, OpenCategory) for column in schema.modelled):
        raise UsageError(
            f"method {method.name}", f"gives pure ε, so delta ({budget.delta!r}) would buy nothing.", "Drop delta=."
        )
    return "pure"
