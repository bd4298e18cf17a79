"""Planted blunders with scores: qualities that move further between neighbours than they say."""

from collections.abc import Mapping
from fractions import Fraction

from understudy.counts.source import Ints
from understudy.marginals.clique import Clique
from understudy.privacy.marginal_error import MarginalError, PublicOrPrivate
from understudy.privacy.quality import SCORE_UNIT
from understudy.testing.planted.bug import PlantedBug, patched

__all__ = ["UNDERSTATED"]

_scores = PublicOrPrivate.scores


def _not_halved(self: PublicOrPrivate, exact: Mapping[Clique, Ints]) -> Ints:
    """Both absolute values of a public score can move, in opposite directions; a published program counts one."""
    found = _scores(self, exact)
    for place, (_, source) in enumerate(self.options):
        found[place] *= 2 if source == "public" else 1
    return found


def _of_shares(self: MarginalError) -> Fraction:
    """Half a row: right for total variation, which is half the L1 distance that is scored."""
    return Fraction(max(self._multipliers) * SCORE_UNIT, 2)


UNDERSTATED: tuple[PlantedBug, ...] = (
    PlantedBug("public scores not halved", "choice replay", patched(PublicOrPrivate, "scores", _not_halved)),
    PlantedBug(
        "errors of tables as if halved", "choice replay", patched(MarginalError, "sensitivity", property(_of_shares))
    ),
)
