"""What trainings cost by their requests alone: the rate, bound and noise of every step that was asked for."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from understudy.privacy.cost import DELTA_UNIT
from understudy.privacy.randomizer import Request
from understudy.privacy.training.accountant import Part, parts_epsilon, rate_of

__all__ = ["trainings_price"]


def trainings_price(requests: Sequence[Request]) -> list[tuple[Fraction, int]]:
    """ε and the units of δ of every training among the requests; a step number that does not rise begins another."""
    trainings: list[list[Request]] = []
    before = None
    for request in requests:
        if request.kind != "train":
            continue
        if before is None or request.layer <= before.layer or request.name != before.name:
            trainings.append([])
        trainings[-1].append(request)
        before = request
    return [_price(asked) for asked in trainings]


def _price(asked: Sequence[Request]) -> tuple[Fraction, int]:
    alike: Counter[tuple[float, float]] = Counter()
    for request in asked:
        assert request.law is not None
        rate = 1.0 if request.layer == 0 else rate_of(1 / request.rate)
        alike[rate, request.law.scale / float(request.sensitivity)] += 1
    delta = max(request.delta for request in asked)
    parts = [Part(rate, multiplier, steps) for (rate, multiplier), steps in alike.items()]
    return Fraction(parts_epsilon(parts, delta / DELTA_UNIT)), delta
