"""The ranks that Bowen and Snoke (2021) print: Table 4 (the challenge), Tables 5 and 6 (their measures)."""

from dataclasses import dataclass

from scipy import stats

from studies.field.entrants import TEAMS

__all__ = ["PRINTED", "Match", "PrintedOrder", "challenge_of", "hits", "printed_tau"]


@dataclass(frozen=True)
class PrintedOrder:
    """Teams from first to fifth by one measure of one match."""

    table: int
    match: int
    measure: str
    by: str
    teams: tuple[str, ...]

    @property
    def bench(self) -> str:
        return "census" if self.match == 3 else "fire"


def _teams(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PRINTED = (
    PrintedOrder(4, 1, "match1", "the challenge", _teams("pfr DPSyn RMcKenna UCLANESL PrivBayes")),
    PrintedOrder(4, 2, "match2", "the challenge", _teams("pfr DPSyn PrivBayes RMcKenna Gardn999")),
    PrintedOrder(4, 3, "match3", "the challenge", _teams("RMcKenna DPSyn PrivBayes Gardn999 UCLANESL")),
    PrintedOrder(5, 2, "cart_ratio", "CART pMSE-ratio", _teams("pfr Gardn999 DPSyn RMcKenna PrivBayes")),
    PrintedOrder(5, 2, "cart_specks", "CART SPECKS", _teams("pfr DPSyn Gardn999 PrivBayes RMcKenna")),
    PrintedOrder(5, 2, "logistic_ratio", "logistic pMSE-ratio", _teams("PrivBayes Gardn999 pfr RMcKenna DPSyn")),
    PrintedOrder(5, 2, "logistic_specks", "logistic SPECKS", _teams("PrivBayes Gardn999 pfr RMcKenna DPSyn")),
    PrintedOrder(6, 3, "cart_ratio", "CART pMSE-ratio", _teams("UCLANESL Gardn999 DPSyn RMcKenna PrivBayes")),
    PrintedOrder(6, 3, "cart_specks", "CART SPECKS", _teams("RMcKenna DPSyn PrivBayes UCLANESL Gardn999")),
    PrintedOrder(6, 3, "logistic_ratio", "logistic pMSE-ratio", _teams("RMcKenna PrivBayes DPSyn Gardn999 UCLANESL")),
    PrintedOrder(6, 3, "logistic_specks", "logistic SPECKS", _teams("RMcKenna PrivBayes Gardn999 DPSyn UCLANESL")),
)


def challenge_of(match: int) -> tuple[str, ...]:
    """The teams that took part in a match, from first to fifth."""
    return next(order.teams for order in PRINTED if (order.table, order.match) == (4, match))


def hits(order: PrintedOrder) -> tuple[str, ...]:
    """Teams with the same rank by the measure and in the challenge: bold in Tables 5 and 6."""
    pairs = zip(order.teams, challenge_of(order.match), strict=True)
    return tuple(team for team, other in pairs if team == other)


def printed_tau(order: PrintedOrder) -> float:
    """Kendall's τ of a printed order and that of the challenge."""
    places = [order.teams.index(team) for team in challenge_of(order.match)]
    return float(stats.kendalltau(range(len(places)), places).statistic)


@dataclass(frozen=True)
class Match:
    """A match as it is run here: its table, its score, and the methods of the teams that took part in it."""

    number: int
    bench: str
    score: str

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(TEAMS[team] for team in challenge_of(self.number))
