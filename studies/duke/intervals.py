"""Figures 1 and 2 of the source: intervals of a label's share, computed and simulated; no table is involved."""

from collections.abc import Sequence
from itertools import count as count_from

import numpy as np

from studies.duke.draws import drawn_shares, histograms_svg
from studies.writing import Form, StudyPage, table
from understudy.methods.leaf_size import (
    RATES,
    RECORDS,
    SHARES,
    LeafInterval,
    intervals_svg,
    leaf_interval,
    leaf_size,
    simulated_interval,
)

__all__ = ["of_all", "show_intervals", "size_verdict"]

CHECKED = (0.1, 0.4, 1.0)
ENDLESS, NO_NOISE = 1e-6, 1e6
"""Values of λ that stand for noise without end and for none."""
NEGLIGIBLE, RAPID = 1.1, 2.0
"""Widths within the first factor count as equal; those apart by more than the second have changed rapidly."""
CLOSE = 0.003
"""Ends of intervals that are no further apart correspond closely."""
SIMULATED_RATE, SIMULATED_RECORDS = 0.3, 1000


def show_intervals(page: StudyPage) -> None:
    """The two figures, with a row for everything the source says about them."""
    form = page.form
    form.out.mkdir(parents=True, exist_ok=True)
    (form.out / f"{page.name}-figure-1.svg").write_text(intervals_svg(), encoding="utf-8")
    page.say("## Figure 1: intervals of a label's share")
    page.say(f"![Intervals by number of records and λ]({page.name}-figure-1.svg)")
    endless = [leaf_interval(share, ENDLESS, records).width for share in SHARES for records in RECORDS]
    page.say(
        "The source's figure begins at λ = 0.0. By its own definition, λ = ε/Δ, that is noise without end: computed at "
        f"λ = 10⁻⁶, every interval is at least {min(endless):.3f} wide, and in the figure it would press all others "
        "together. It is not drawn. If no noise at all was meant, the table has it under “none”."
    )
    records = RECORDS[1:]
    rates = [*((rate, f"{rate:g}") for rate in CHECKED), (NO_NOISE, "none")]
    body = [
        [f"{share:g}", named, *(_shown(leaf_interval(share, rate, count)) for count in records)]
        for share in SHARES
        for rate, named in rates
    ]
    page.say(table(("share p₀", "λ", *(f"n = {count:,}" for count in records)), body))
    _size_row(page)
    _width_rows(page)
    _expectation_rows(page)
    _simulated(page, form)


def of_all(holds: Sequence[bool]) -> str:
    """The verdict on a statement about all cases that are computed exactly.

    >>> of_all([True, True]), of_all([True, False]), of_all([True, False, False])
    ('confirmed', 'mixed', 'refuted')
    """
    if all(holds):
        return "confirmed"
    return "mixed" if 2 * sum(holds) >= len(holds) else "refuted"


def _shown(interval: LeafInterval) -> str:
    return f"{interval.lower:.4f}–{interval.upper:.4f}"


def _size_row(page: StudyPage) -> None:
    ours = leaf_interval(0.25, 0.4, 1000)
    wide = leaf_size(0.05, share=0.25, rate=0.4).records
    needed = next(records for records in count_from(wide) if _inside(records))
    page.find(
        "Figure 1: at p₀ = 0.25 and λ = 0.4, n_B should be at least 1,000 to keep the interval within [0.22, 0.27]",
        f"n = 1,000 gives [{ours.lower:.4f}, {ours.upper:.4f}]; the first n within [0.22, 0.27] is {needed:,}. Any "
        f"interval as wide as that one, 0.05, takes {wide:,}. (We say: right if the first n is within a factor of "
        f"{NEGLIGIBLE} of 1,000)",
        size_verdict(needed, 1000),
    )


def _inside(records: int) -> bool:
    interval = leaf_interval(0.25, 0.4, records)
    return interval.lower >= 0.22 and interval.upper <= 0.27


def size_verdict(needed: int, printed: int) -> str:
    """Whether “at least so many” is about the smallest number that is enough.

    >>> size_verdict(1050, 1000), size_verdict(1300, 1000)
    ('confirmed', 'refuted: 1,000 are too few')
    >>> size_verdict(800, 1000)
    'refuted: fewer are enough'
    """
    if needed > NEGLIGIBLE * printed:
        return f"refuted: {printed:,} are too few"
    return "refuted: fewer are enough" if printed > NEGLIGIBLE * needed else "confirmed"


def _width_rows(page: StudyPage) -> None:
    widths = [[leaf_interval(share, rate, count).width for share in SHARES] for rate in RATES for count in RECORDS]
    rising = [bool(np.all(np.diff(one) >= -1e-12)) for one in widths]
    ends = [one[0] == min(one) and one[-1] == max(one) for one in widths]
    page.find(
        "widths are smallest at p₀ = 0 and largest at p₀ = 0.5",
        f"so in {sum(ends)} of {len(ends)} cases (λ × n); widths rise with p₀ all the way in {sum(rising)}",
        of_all(ends),
    )
    small = {(share, count): _ratio(share, count) for share in SHARES for count in RECORDS if count < 1000}
    slow = [f"p₀ = {share:g}, n = {count}: {ratio:.2f}" for (share, count), ratio in small.items() if ratio <= RAPID]
    page.find(
        "for all p₀ and n_B below about 1,000 widths fall rapidly as λ rises",
        f"widths at λ = 0.1 are {min(small.values()):.1f} to {max(small.values()):.1f} times those at λ = 1; more than "
        f"{RAPID:g} times (we say: rapidly) in {len(small) - len(slow)} of {len(small)} cases (p₀ × n = "
        f"{', '.join(str(count) for count in RECORDS if count < 1000)}){', not at ' + '; '.join(slow) if slow else ''}",
        of_all([ratio > RAPID for ratio in small.values()]),
    )
    large = {(share, count): _ratio(share, count) for share in SHARES for count in RECORDS if count >= 1000}
    gaps = [leaf_interval(share, 0.1, 1000).width - leaf_interval(share, 1.0, 1000).width for share in SHARES]
    later = [_ratio(share, count, rate=0.4) for share, count in large if share >= 0.1]
    page.find(
        "at n_B ≥ 1,000 the effect of λ on the width is negligible",
        f"widths at λ = 0.1 are {min(large.values()):.2f} to {max(large.values()):.1f} times those at λ = 1 (n = 1,000 "
        f"and 2,000), at n = 1,000 wider by {min(gaps):.3f} to {max(gaps):.3f}; within a factor of {NEGLIGIBLE} (we "
        f"say: negligible) in {sum(ratio <= NEGLIGIBLE for ratio in large.values())} of {len(large)} cases. Between "
        f"λ = 0.4 and 1, for p₀ ≥ 0.1, the factor is at most {max(later):.2f}",
        of_all([ratio <= NEGLIGIBLE for ratio in large.values()]),
    )


def _ratio(share: float, records: int, rate: float = 0.1) -> float:
    """The width at this λ over the width at λ = 1."""
    return leaf_interval(share, rate, records).width / leaf_interval(share, 1.0, records).width


def _expectation_rows(page: StudyPage) -> None:
    """What Figure 1 lets one expect of Figures 8 and 9."""
    rates = [leaf_interval(share, 0.1, 1000).width / leaf_interval(share, 0.4, 1000).width for share in SHARES]
    page.find(
        "Figure 8: that ε = 0.1 and 0.4 do not differ at n_B = 1,000 is perhaps consistent with the intervals of "
        "Figure 1",
        f"at n = 1,000 intervals at λ = 0.1 are {min(rates):.2f} to {max(rates):.2f} times as wide as at λ = 0.4 "
        f"(by p₀; we say: consistent if within a factor of {NEGLIGIBLE})",
        of_all([ratio <= NEGLIGIBLE for ratio in rates]),
    )
    sizes = [
        leaf_interval(share, rate, 1000).width / leaf_interval(share, rate, 2000).width
        for share in SHARES
        for rate in RATES
    ]
    drop = max(leaf_interval(0.5, rate, 1000).width - leaf_interval(0.5, rate, 2000).width for rate in RATES)
    page.find(
        "Figure 9: by Figure 1 no significant difference is expected between n_B = 1,000 and 2,000",
        f"intervals at n = 1,000 are {min(sizes):.2f} to {max(sizes):.2f} times as wide as at 2,000 (all p₀ and λ; we "
        f"say: no difference if within a factor of {NEGLIGIBLE}); at p₀ = 0.5 by at most {drop:.3f} of a share",
        of_all([ratio <= NEGLIGIBLE for ratio in sizes]),
    )


def _simulated(page: StudyPage, form: Form) -> None:
    draws = form.pick(1000, 10_000)
    page.say(f"## Figure 2: the same by {draws:,} draws (λ = {SIMULATED_RATE}, n = {SIMULATED_RECORDS:,})")
    rng = np.random.default_rng(2018)
    body, worst, panels = [], 0.0, []
    for share in SHARES:
        exact = leaf_interval(share, SIMULATED_RATE, SIMULATED_RECORDS)
        drawn = simulated_interval(share, SIMULATED_RATE, SIMULATED_RECORDS, rng, draws=draws)
        worst = max(worst, abs(exact.lower - drawn.lower), abs(exact.upper - drawn.upper))
        body.append([f"{share:g}", _shown(exact), _shown(drawn)])
        panels.append((share, drawn_shares(share, SIMULATED_RATE, SIMULATED_RECORDS, draws, rng), exact, drawn))
    title = f"Drawn shares, and 90% intervals: computed, and from {draws:,} draws"
    (form.out / f"{page.name}-figure-2.svg").write_text(
        histograms_svg(panels, SIMULATED_RECORDS, title), encoding="utf-8"
    )
    page.say(f"![{title}]({page.name}-figure-2.svg)")
    page.say(table(("share p₀", "computed", "drawn"), body))
    page.find(
        "Figure 2: intervals from 10,000 draws correspond closely to the computed ones",
        f"largest difference of an end: {worst:.4f} (we say: closely if below {CLOSE})",
        "confirmed" if worst < CLOSE else "refuted",
    )
