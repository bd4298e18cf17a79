"""Our reading of the simulation, in words whose numbers come from the runs."""

from studies.steps.claims import Judge
from studies.steps.design import BINNED
from studies.steps.measures import Corner
from studies.writing import Estimate

__all__ = ["remarks"]


def remarks(given: Judge) -> list[str]:
    """What agrees, what differs, and by how much."""
    rows, least, most = given.sizes[0], given.epsilons[0], given.epsilons[-1]

    def at(model: int, epsilon: float, method: str, measure: str) -> str:
        return str(given.found[Corner(model, rows, epsilon), method].shown(measure))

    def covered(model: int, epsilon: float, method: str) -> str:
        return _percent(given.found[Corner(model, rows, epsilon), method].shown("coverage"))

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
        f"* Coverage of PrivBayes in model 1: {given.coverages(1, 'PrivBayes')}. The paper's fall with ε shows with "
        "many rows only, where intervals are short and a bias tells. Binning Y is not the cause: with binned Y and "
        f"nothing else intervals cover {covered(1, 0.0, BINNED)}.",
        f"* At ε = {least:g} intervals of all methods cover too little in model 1 ({covered(1, least, 'STEPS')} by "
        "STEPS): errors that all sets share, as from cutting noisy counts at 0, do not show in the spread between "
        "sets.",
    ]


def _percent(one: Estimate) -> str:
    return f"{one.mean:.1%} ± {one.half:.1%}"
