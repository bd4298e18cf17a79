"""Tables of a column with very many codes: what noise hides of one code is told by codes that go with others alike.

Each code of the wide column has a profile, the shares in which its rows have the codes of the other column, and there
are only a few profiles: one around every code of the other column (the most frequent ones), and one like all rows.
A noisy line y of a code with c rows has means c·p under profile p, with the variance σ² of the noise and the scatter of
its own counts, c over the number of cells. Expectation and maximisation, in turn:

1. How likely each profile is for each code, from its line and from how many codes have that profile.
2. Each profile as the mean of all lines, weighted by that and by their precision; how many codes have it.

A code is then expected to follow its likeliest profiles, their chances squared: rows of a code that are spread over
two profiles are half wrong in either case, those that follow the likelier one are right more often than not.

Post-processing of noisy answers.
"""

import numpy as np

from understudy.arrays import Floats
from understudy.models.pair_mixtures import drawn_towards, interaction_share, raked, with_margins

_MOST_PROFILES = 64
_STEPS = 12
_AROUND = 0.8
"""Share of the code that a profile begins around; the rest is like all rows."""
_LIKE_ALL, _LEAST = 1e-3, 1e-4
"""Weight of all rows in every profile, as a share of a mean profile's own, and the least that is left of them."""
_SHARPENED = 2.0


def drawn_by_profiles(noisy: Floats, rows: Floats, columns: Floats, variance: float) -> Floats:
    """The table with these sums that codes of the longer side are expected to have, drawn towards the noisy one.

    No cell may be impossible. Some counts of the table may be a little below 0.
    """
    possible = np.ones(noisy.shape, dtype=bool)
    measured = with_margins(noisy, rows, columns, possible)
    if rows.size >= columns.size:
        expected = by_profiles(measured, rows, variance)
    else:
        expected = by_profiles(measured.T, columns, variance).T
    return drawn_towards(raked(expected, rows, columns), measured, variance * interaction_share(possible))


def by_profiles(noisy: Floats, counts: Floats, variance: float) -> Floats:
    """Expected counts, one line per code of the wide column: `counts` of each, shared out by its profiles.

    >>> noisy = np.array([[90.0, 10.0], [88.0, 12.0], [9.0, 91.0], [9.0, 1.0]])
    >>> by_profiles(noisy, noisy.sum(axis=1), 4.0).round()[[0, 2]].tolist()
    [[89.0, 11.0], [9.0, 91.0]]
    """
    shares = np.maximum(noisy.sum(axis=0), 1e-9)
    shares /= shares.sum()
    around = np.argsort(-shares, kind="stable")[:_MOST_PROFILES]
    profiles = np.vstack([(1.0 - _AROUND) * shares + _AROUND * np.eye(shares.size)[around], shares])
    often = np.full(len(profiles), 1.0 / len(profiles))
    spread = variance + counts / shares.size
    for _ in range(_STEPS):
        likely = _chances(noisy, counts, spread, profiles, often)
        lines = likely * (counts / spread)[:, np.newaxis]
        weights = lines.T @ counts
        little = _LIKE_ALL * max(float(weights.mean()), 1e-30)
        profiles = (lines.T @ noisy + little * shares) / (weights + little)[:, np.newaxis]
        profiles = np.maximum(profiles, 0.0) + _LEAST * shares
        profiles /= profiles.sum(axis=1, keepdims=True)
        often = (likely.sum(axis=0) + 1.0) / (len(noisy) + len(profiles))
    likely = _chances(noisy, counts, spread, profiles, often) ** _SHARPENED
    likely /= likely.sum(axis=1, keepdims=True)
    return np.asarray(counts[:, np.newaxis] * (likely @ profiles))


def _chances(noisy: Floats, counts: Floats, spread: Floats, profiles: Floats, often: Floats) -> Floats:
    """How likely each profile is, one line per code."""
    lines = counts[:, np.newaxis]
    logs = lines * (noisy @ profiles.T) - 0.5 * lines**2 * (profiles**2).sum(axis=1)
    logs = logs / spread[:, np.newaxis] + np.log(often)
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
