"""Every statement that the papers print about their results on young voters: here those of 2020, then those of 2019."""

import statistics
from collections.abc import Callable, Sequence

from studies.verdicts import Comparison, above, count_of, range_of
from studies.voters.combine import apart, better_or_similar, no_better, somewhere, together
from studies.voters.earlier import earlier_claims
from studies.voters.judge import MARGINS, Claim, Judge, powers
from studies.voters.measures import EPSILONS

__all__ = ["FIRST", "claims"]

STEPS, UH = ("STEPS-2", "STEPS-3"), ("UH-2", "UH-3")
FIRST = ("Laplace", *STEPS, *UH, "PrivBayes")
NOT_NETWORK = ("Laplace", *STEPS, *UH)
RATES = ("chi2 1%", "chi2 5%", "chi2 10%")
INTEREST = ("overlap preregistration_state=yes", "overlap registered=yes",
            "overlap preregistration_state=yes:registered=yes")  # fmt: skip
LOWER, ZERO, HIGHER = EPSILONS[:2], EPSILONS[2], EPSILONS[2:]
"""PrivBayes is worst when log ε < 0, so “higher levels” are the others."""
HIGH, TOP = EPSILONS[3], EPSILONS[4]
LATER = "2020"
PARTS = ("important columns", "other columns")


def claims() -> list[Claim]:
    """All statements, in the order of printing."""
    return [*_specks(), *_tests(), *_model(), *_figure_7(), *_conclusions(), *earlier_claims()]


def _rates(
    judge: Judge, kind: str, first: Sequence[str], second: Sequence[str], at: Sequence[float]
) -> list[Comparison]:
    compare = judge.more if kind == "more" else judge.similar
    return [answer for rate in RATES for answer in compare(first, second, rate, at)]


def _specks() -> list[Claim]:
    return [
        Claim(LATER, "SPECKS falls as ε grows, for all methods", lambda judge: judge.falls(FIRST, "SPECKS")),
        Claim(
            LATER,
            "the standard deviation of SPECKS over repeats is two orders below its mean (we say: less than 3 %)",
            lambda judge: [judge.spread(system, epsilon, 0.03) for system in FIRST for epsilon in EPSILONS],
            shown=lambda judge: "by system, largest: " + ", ".join(f"{one} {_widest(judge, one):.1%}" for one in FIRST),
        ),
        Claim(
            LATER,
            "PrivBayes outperforms all other methods in SPECKS at all ε",
            lambda judge: judge.less(("PrivBayes",), NOT_NETWORK, "SPECKS"),
        ),
        Claim(
            LATER,
            "STEPS-2 and STEPS-3 are very similar in SPECKS",
            lambda judge: judge.similar(("STEPS-2",), ("STEPS-3",), "SPECKS"),
        ),
        Claim(
            LATER,
            "STEPS outperforms the flat Laplace sanitizer in SPECKS until log ε = 2",
            lambda judge: judge.less(STEPS, ("Laplace",), "SPECKS", EPSILONS[:4]),
        ),
        Claim(
            LATER,
            "… and no longer at log ε = 2: STEPS no better than Laplace (we say: worse, or better within the margin)",
            lambda judge: no_better(
                judge.less(STEPS, ("Laplace",), "SPECKS", (TOP,)), judge.similar(STEPS, ("Laplace",), "SPECKS", (TOP,))
            ),
        ),
        Claim(LATER, "STEPS outperforms UH modified in SPECKS", lambda judge: judge.less(STEPS, UH, "SPECKS")),
        Claim(
            LATER,
            "UH modified is similar to the Laplace sanitizer in SPECKS until around log ε = 2",
            lambda judge: judge.similar(UH, ("Laplace",), "SPECKS", EPSILONS[:4]),
        ),
        Claim(
            LATER,
            "… and no longer at log ε = 2: UH and Laplace differ in SPECKS (we say: by more than the margin)",
            lambda judge: apart(judge.similar(UH, ("Laplace",), "SPECKS", (TOP,))),
        ),
    ]


def _widest(judge: Judge, system: str) -> float:
    return max(0.03 - judge.spread(system, epsilon, 0.03).gap.mean for epsilon in EPSILONS)


def _tests() -> list[Claim]:
    return [
        Claim(
            LATER,
            "chi-square consistency: Laplace and STEPS outperform PrivBayes and UH for most ε (we say: at more than "
            "half of them; an ε counts if its 27 comparisons, each method with each other at three levels, would "
            "confirm it at least in part)",
            lambda judge: [together(_outperform(judge, epsilon)) for epsilon in EPSILONS],
            most=True,
            shown=lambda judge: (
                "the smallest leads of each ε; by ε: "
                + "; ".join(f"{powers(epsilon)} {count_of(_outperform(judge, epsilon))}" for epsilon in EPSILONS)
            ),
        ),
        Claim(
            LATER,
            "chi-square consistency at log ε = 1: Laplace above STEPS",
            lambda judge: _rates(judge, "more", ("Laplace",), STEPS, (HIGH,)),
        ),
        Claim(
            LATER,
            "chi-square consistency at log ε = 2: STEPS better than Laplace or similar",
            lambda judge: better_or_similar(
                _rates(judge, "more", STEPS, ("Laplace",), (TOP,)),
                _rates(judge, "similar", STEPS, ("Laplace",), (TOP,)),
            ),
        ),
        Claim(
            LATER,
            "chi-square consistency: UH above PrivBayes on average (but for log ε = 0 at 5 and 10 %)",
            _above_network,
        ),
        Claim(
            LATER,
            "… UH not above PrivBayes in consistency at log ε = 0 at the 5 and 10 % levels (we say: lower, or above "
            "within the margin)",
            _not_above_network,
        ),
    ]


def _above_network(judge: Judge) -> list[Comparison]:
    """Whether UH is more consistent than PrivBayes, without the exceptions."""
    others = [epsilon for epsilon in EPSILONS if epsilon != ZERO]
    rest = [one for rate in RATES[1:] for one in judge.more(UH, ("PrivBayes",), rate, others)]
    return [*judge.more(UH, ("PrivBayes",), RATES[0]), *rest]


def _not_above_network(judge: Judge) -> list[Comparison]:
    """The exceptions."""
    found = []
    for rate in RATES[1:]:
        more = judge.more(UH, ("PrivBayes",), rate, (ZERO,))
        found += no_better(more, judge.similar(UH, ("PrivBayes",), rate, (ZERO,)))
    return found


def _outperform(judge: Judge, epsilon: float) -> list[Comparison]:
    return _rates(judge, "more", ("Laplace", *STEPS), ("PrivBayes", *UH), (epsilon,))


def _model() -> list[Claim]:
    return [
        Claim(
            LATER,
            "interval overlap, mean of all coefficients: poor (we say: below 0.5) for all methods at all ε",
            lambda judge: judge.level(FIRST, "overlap", 0.5, at_least=False),
        ),
        Claim(
            LATER,
            "… because a big part of the coefficients has an overlap close to 0 (we say: a quarter below 0.05)",
            lambda judge: judge.level(FIRST, "overlap near 0", 0.25),
        ),
        Claim(
            LATER,
            "the three coefficients of interest overlap by around 0.75 or above in most cases (we say: 0.75 less the "
            "margin of similar overlaps)",
            lambda judge: _interest(judge, 0.75 - MARGINS["overlap"]),
            most=True,
            shown=lambda judge: f"at 0.75 itself: {count_of(_interest(judge, 0.75))}",
        ),
    ]


def _interest(judge: Judge, level: float) -> list[Comparison]:
    return [one for measure in INTEREST for one in judge.level(FIRST, measure, level)]


def _figure_7() -> list[Claim]:
    """What the paper says next without naming coefficients: of those of interest, which it named last."""
    return [
        _of_interest(
            "PrivBayes has the lowest overlaps when log ε < 0",
            lambda judge, measure: judge.less(("PrivBayes",), NOT_NETWORK, measure, LOWER),
        ),
        _of_interest(
            "at higher ε (we say: log ε ≥ 0) PrivBayes performs better, closer to 1: than itself at log ε < 0",
            _network_gains,
        ),
        _of_interest(
            "… and PrivBayes performs better at higher ε than the other methods",
            lambda judge, measure: judge.more(("PrivBayes",), NOT_NETWORK, measure, HIGHER),
        ),
        _of_interest(
            "overlaps of all other methods are flat across ε", lambda judge, measure: judge.flat(NOT_NETWORK, measure)
        ),
        _of_interest(
            "STEPS-2 and STEPS-3 are similar in overlap",
            lambda judge, measure: judge.similar(("STEPS-2",), ("STEPS-3",), measure),
        ),
        _of_interest(
            "STEPS has slightly higher overlaps than Laplace (mean over ε)",
            lambda judge, measure: judge.more_overall(STEPS, ("Laplace",), measure),
            slight=True,
        ),
        _of_interest(
            "UH modified has slightly smaller overlaps than STEPS and Laplace in general (mean over ε)",
            lambda judge, measure: judge.less_overall(UH, ("Laplace", *STEPS), measure),
            slight=True,
        ),
    ]


def _of_interest(printed: str, compare: Callable[[Judge, str], list[Comparison]], *, slight: bool = False) -> Claim:
    """A statement on the three coefficients of interest, with the mean of all coefficients beside."""
    return Claim(
        LATER,
        f"{printed}; coefficients of interest",
        lambda judge: [one for measure in INTEREST for one in compare(judge, measure)],
        shown=lambda judge: _beside(compare(judge, "overlap")),
        slight=slight,
    )


def _beside(answers: Sequence[Comparison]) -> str:
    return f"for the mean of all coefficients {count_of(answers)}, {range_of(answers)}"


def _network_gains(judge: Judge, measure: str) -> list[Comparison]:
    """Whether PrivBayes overlaps more at each higher ε than in the mean of the lower ones."""
    lower = judge.over("PrivBayes", (measure,), LOWER)
    return [above(judge.values("PrivBayes", one, measure), lower, judge.margin(measure)) for one in HIGHER]


def _conclusions() -> list[Claim]:
    return [
        Claim(
            LATER,
            "conclusions: STEPS outperformed the modified universal histogram in general (mean over ε: SPECKS, "
            "consistency, overlap; as many layers)",
            lambda judge: [
                one
                for ours, theirs in zip(STEPS, UH, strict=True)
                for name, one in _analyses(judge, ours, theirs).items()
                if name != "overlap of interest"
            ],
            most=True,
        ),
        _in_some(
            "conclusions and abstract: STEPS preserves the original information better than PrivBayes and than Laplace "
            "case by case, that is in some analyses",
            [(ours, theirs) for theirs in ("PrivBayes", "Laplace") for ours in STEPS],
        ),
        Claim(
            LATER,
            "conclusions: STEPS preserves more important columns better than less important ones (STEPS-3; we say: its "
            "errors of the experts' three columns, as shares of those by UH-3, are smaller than those of the others, "
            "in the mean over ε)",
            lambda judge: [_importance(judge)],
            shown=lambda judge: (
                "mean total variation, STEPS-3 and UH-3: "
                + "; ".join(
                    f"{part} {judge.mean('STEPS-3', 1.0, part)} and {judge.mean('UH-3', 1.0, part)}" for part in PARTS
                )
                + " at ε = 1"
            ),
        ),
        _in_some(
            "abstract: STEPS is better than the modified universal histogram in some analyses (as many layers)",
            list(zip(STEPS, UH, strict=True)),
        ),
    ]


def _importance(judge: Judge) -> Comparison:
    """Whether STEPS-3 gains more over columns at random in the experts' columns than in the others."""
    important, others = (
        [one / statistics.fmean(judge.over("UH-3", (part,))) for one in judge.over("STEPS-3", (part,))]
        for part in PARTS
    )
    return above(others, important)


def _in_some(printed: str, pairs: Sequence[tuple[str, str]]) -> Claim:
    return Claim(
        LATER,
        f"{printed} (we say: mean over ε, in at least one of SPECKS, consistency, mean overlap, overlap of interest)",
        lambda judge: [somewhere(list(_analyses(judge, *pair).values())) for pair in pairs],
        shown=lambda judge: (
            "best analysis of each pair, in units of its margin; clearly better: "
            + "; ".join(f"{ours} than {theirs} in {_won(judge, ours, theirs)}" for ours, theirs in pairs)
        ),
    )


def _analyses(judge: Judge, ours: str, theirs: str) -> dict[str, Comparison]:
    """Whether one system is better than another in the mean over ε, analysis by analysis."""
    found = {
        "SPECKS": judge.less_overall((ours,), (theirs,), "SPECKS"),
        "consistency": judge.more_overall((ours,), (theirs,), *RATES),
        "overlap": judge.more_overall((ours,), (theirs,), "overlap"),
        "overlap of interest": judge.more_overall((ours,), (theirs,), *INTEREST),
    }
    return {name: answers[0] for name, answers in found.items()}


def _won(judge: Judge, ours: str, theirs: str) -> str:
    return ", ".join(name for name, one in _analyses(judge, ours, theirs).items() if one.answer == "yes") or "none"
