"""The ranks that Bowen and Snoke (2021) print: Table 4 (the challenge), Tables 5 and 6 (their measures)."""

from dataclasses import dataclass

__all__ = ["PRINTED", "PrintedOrder"]


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
