"""Figures 1 and 2 of the source: intervals of a label's share, computed and simulated; no table is involved."""

from collections.abc import Sequence

import numpy as np

from studies.duke.draws import drawn_shares, histograms_svg
from studies.writing import Form, StudyPage, table
from understudy.mechanisms.labels.leaf_figure import RATES, RECORDS, SHARES, intervals_svg
from understudy.mechanisms.labels.leaf_interval import LeafInterval, leaf_interval, simulated_interval
from understudy.mechanisms.labels.leaf_size import leaf_size

__all__ = ["show_intervals"]

CHECKED = (0.1, 0.4, 1.0)
NEGLIGIBLE = 1.1
"""Widths within this factor count as equal."""
SIMULATED_RATE, SIMULATED_RECORDS = 0.3, 1000


def show_intervals(page: StudyPage) -> None:
    """The two figures, with a row for everything the source says about them."""
    form = page.form
    form.out.mkdir(parents=True, exist_ok=True)
    (form.out / f"{page.name}-figure-1.svg").write_text(intervals_svg(), encoding="utf-8")
    page.say("## Figure 1: intervals of a label's share")
    page.say(f"![Intervals by number of records and λ]({page.name}-figure-1.svg)")
    records = RECORDS[1:]
    body = [
        [f"{share:g}", f"{rate:g}", *(_shown(leaf_interval(share, rate, count)) for count in records)]
        for share in SHARES
        for rate in CHECKED
    ]
    page.say(table(("share p₀", "λ", *(f"n = {count:,}" for count in records)), body))
    _figure_rows(page)
    _simulated(page, form)


def _shown(interval: LeafInterval) -> str:
    return f"{interval.lower:.4f}–{interval.upper:.4f}"


def _figure_rows(page: StudyPage) -> None:
    ours = leaf_interval(0.25, 0.4, 1000)
    page.find(
        "Figure 1: p₀ = 0.25, λ = 0.4 and n = 1,000 keep the interval within [0.22, 0.27]",
        f"[{ours.lower:.4f}, {ours.upper:.4f}]",
        "confirmed in part: the lower end; the upper end is cut off, not rounded, and lies outside"
        if ours.lower > 0.22 and ours.upper > 0.27
        else "confirmed",
    )
    asked = leaf_size(0.05, share=0.25, rate=0.4).records
    page.find(
        "… so n_B should be at least 1,000 for a width of 0.05",
        f"{asked:,} records are enough for a width of 0.05 at p₀ = 0.25; at p₀ = 0.5 it takes "
        f"{leaf_size(0.05, share=0.5, rate=0.4).records:,}",
        "confirmed in part: enough for this share, not for all" if asked <= 1000 else "refuted",
    )
    widths = [[leaf_interval(share, rate, count).width for share in SHARES] for rate in RATES for count in RECORDS]
    rising = [bool(np.all(np.diff(one) >= -1e-12)) for one in widths]
    page.find(
        "widths are smallest at p₀ = 0 and largest at p₀ = 0.5",
        f"widths rise with p₀ in {sum(rising)} of {len(rising)} panels (λ × n)",
        "confirmed" if all(rising) else _by_ends(widths),
    )
    small = [_ratio(share, 100) for share in SHARES]
    large = [_ratio(share, 1000) for share in SHARES]
    gaps = [leaf_interval(share, 0.1, 1000).width - leaf_interval(share, 1.0, 1000).width for share in SHARES]
    later = [leaf_interval(share, 0.4, 1000).width / leaf_interval(share, 1.0, 1000).width for share in SHARES[3:]]
    page.find(
        "below n ≈ 1,000 widths fall rapidly as λ rises",
        f"n = 100: widths at λ = 0.1 are {min(small):.1f} to {max(small):.1f} times those at λ = 1",
        "confirmed" if min(small) > 2 else "refuted",
    )
    page.find(
        "at n ≥ 1,000 the effect of λ on the width is negligible",
        f"n = 1,000: widths at λ = 0.1 are {min(large):.2f} (p₀ = 0.5) to {max(large):.1f} (p₀ = 0) times those at "
        f"λ = 1, wider by {min(gaps):.3f} to {max(gaps):.3f}; from λ = 0.4 on and p₀ ≥ 0.1 at most "
        f"{max(later):.2f} times",
        "refuted for rare labels and for λ = 0.1; holds from λ = 0.4 on for shares of 0.1 or more"
        if min(large) > NEGLIGIBLE >= max(later)
        else "not decided",
    )


def _by_ends(widths: Sequence[Sequence[float]]) -> str:
    ends = all(one[0] == min(one) and one[-1] == max(one) for one in widths)
    return "confirmed for the ends" if ends else "refuted"


def _ratio(share: float, records: int) -> float:
    return leaf_interval(share, 0.1, records).width / leaf_interval(share, 1.0, records).width


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
    title = f"Drawn shares with 90% intervals, computed (solid) and from {draws:,} draws (dotted)"
    (form.out / f"{page.name}-figure-2.svg").write_text(
        histograms_svg(panels, SIMULATED_RECORDS, title), encoding="utf-8"
    )
    page.say(f"![{title}]({page.name}-figure-2.svg)")
    page.say(table(("share p₀", "computed", "drawn"), body))
    page.find(
        "Figure 2: intervals from 10,000 draws correspond closely to the computed ones",
        f"largest difference of an end: {worst:.4f}",
        "confirmed" if worst < 0.003 else "not decided",
    )
