"""Our reading of the simulation, in words whose numbers come from the runs."""

from studies.steps.design import BINNED
from studies.steps.judge import Judge
from studies.writing import Estimate

__all__ = ["remarks"]


def remarks(given: Judge) -> list[str]:
    """What agrees, what differs, and by how much."""
    rows, least, most = given.sizes[0], given.epsilons[0], given.epsilons[-1]

    def at(model: int, epsilon: float, method: str, measure: str) -> str:
        return str(given.cell(model, rows, epsilon, method).shown(measure))

    def covered(model: int, epsilon: float, method: str) -> str:
        return _percent(given.cell(model, rows, epsilon, method).shown("coverage"))

    return [
        f"* Model 2 (n = {rows:,}): the network of degree 2 cannot hold a mean for each of 120 cells, whatever ε: its "
        f"RMSE goes from {at(2, least, 'PrivBayes', 'estimation RMSE')} at ε = {least:g} to "
        f"{at(2, most, 'PrivBayes', 'estimation RMSE')} at ε = {most:g}, that of STEPS from "
        f"{at(2, least, 'STEPS', 'estimation RMSE')} to {at(2, most, 'STEPS', 'estimation RMSE')}. What the paper "
        "prints for the universal histogram (worst coverage and prediction) holds for PrivBayes here: intervals of the "
        f"former cover {covered(2, most, 'UH modified')} at ε = {most:g}, those of the latter "
        f"{covered(2, most, 'PrivBayes')}.",
        f"* Model 1 (n = {rows:,}): no method is best throughout. PrivBayes predicts best at ε = {least:g} "
        f"({at(1, least, 'PrivBayes', 'prediction RMSE')}; STEPS {at(1, least, 'STEPS', 'prediction RMSE')}); at "
        f"ε = {most:g} STEPS has the smaller bias ({at(1, most, 'STEPS', 'bias')}; PrivBayes "
        f"{at(1, most, 'PrivBayes', 'bias')}) and the better coverage ({covered(1, most, 'STEPS')}; "
        f"{covered(1, most, 'PrivBayes')}).",
        f"* PrivBayes in model 1: {given.coverages(1, 'PrivBayes')}. The smallest ε is clearly nearer to 95 % "
        f"than the largest for {_sizes(given)}. At ε = {most:g} and n = {rows:,} intervals are short, and a bias of "
        f"{at(1, most, 'PrivBayes', 'bias')} tells; with binned Y and nothing else it is "
        f"{at(1, 0.0, BINNED, 'bias')}, and intervals cover {covered(1, 0.0, BINNED)}.",
        f"* At ε = {least:g} intervals of all methods cover too little in model 1 ({covered(1, least, 'STEPS')} by "
        "STEPS): errors that all sets share, as from cutting noisy counts at 0, do not show in the spread between "
        "sets.",
    ]


def _sizes(given: Judge) -> str:
    """The n for which intervals of PrivBayes cover clearly better at the smallest ε than at the largest, in model 1."""
    answers = zip(given.sizes, given.ends(1, "PrivBayes", "coverage"), strict=True)
    return " and ".join(f"n = {rows:,}" for rows, one in answers if one.answer == "yes") or "no n"


def _percent(one: Estimate) -> str:
    return f"{one.mean:.1%} ± {one.half:.1%}"
