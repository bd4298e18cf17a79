"""Every statement that the papers print about their results on young voters: here those of 2020, then those of 2019."""

from collections.abc import Sequence
from dataclasses import replace

from studies.verdicts import Comparison, count_of
from studies.voters.earlier import earlier_claims
from studies.voters.judge import MARGINS, Claim, Judge
from studies.voters.measures import EPSILONS

__all__ = ["claims"]

STEPS, UH = ("STEPS-2", "STEPS-3"), ("UH-2", "UH-3")
FIRST = ("Laplace", *STEPS, *UH, "PrivBayes")
NOT_NETWORK = ("Laplace", *STEPS, *UH)
RATES = ("chi2 1%", "chi2 5%", "chi2 10%")
INTEREST = ("overlap preregistration_state=yes", "overlap registered=yes",
            "overlap preregistration_state=yes:registered=yes")  # fmt: skip
HIGH, TOP = EPSILONS[3], EPSILONS[4]
LATER = "2020"


def claims() -> list[Claim]:
    """All statements, in the order of printing."""
    return [*_specks(), *_tests(), *_model(), *earlier_claims()]


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
            "… and no longer at log ε = 2",
            lambda judge: _no_better(
                judge.less(STEPS, ("Laplace",), "SPECKS", (TOP,)), judge.similar(STEPS, ("Laplace",), "SPECKS", (TOP,))
            ),
        ),
        Claim(LATER, "STEPS outperforms UH modified in SPECKS", lambda judge: judge.less(STEPS, UH, "SPECKS")),
        Claim(
            LATER,
            "UH modified is similar to the Laplace sanitizer in SPECKS until around log ε = 2",
            lambda judge: judge.similar(UH, ("Laplace",), "SPECKS", EPSILONS[:4]),
        ),
    ]


def _widest(judge: Judge, system: str) -> float:
    return max(0.03 - judge.spread(system, epsilon, 0.03).gap.mean for epsilon in EPSILONS)


def _no_better(better: Sequence[Comparison], similar: Sequence[Comparison]) -> list[Comparison]:
    """Worse or similar agrees, better and not similar contradicts."""
    found = []
    for one, other in zip(better, similar, strict=True):
        if one.answer == "no" or other.answer == "yes":
            found.append(replace(other, answer="yes"))
        else:
            found.append(replace(other, answer="no" if one.answer == "yes" else "open"))
    return found


def _better_or_similar(better: Sequence[Comparison], similar: Sequence[Comparison]) -> list[Comparison]:
    """Better or similar agrees, worse by more than the margin contradicts."""
    found = []
    for one, other in zip(better, similar, strict=True):
        if "yes" in (one.answer, other.answer):
            found.append(replace(other, answer="yes"))
        else:
            found.append(replace(other, answer="no" if one.answer == other.answer == "no" else "open"))
    return found


def _tests() -> list[Claim]:
    return [
        Claim(
            LATER,
            "chi-square consistency: Laplace and STEPS outperform PrivBayes and UH for most ε",
            lambda judge: _rates(judge, "more", ("Laplace", *STEPS), ("PrivBayes", *UH), EPSILONS),
            most=True,
        ),
        Claim(
            LATER,
            "chi-square consistency at log ε = 1: Laplace above STEPS",
            lambda judge: _rates(judge, "more", ("Laplace",), STEPS, (HIGH,)),
        ),
        Claim(
            LATER,
            "chi-square consistency at log ε = 2: STEPS better than Laplace or similar",
            lambda judge: _better_or_similar(
                _rates(judge, "more", STEPS, ("Laplace",), (TOP,)),
                _rates(judge, "similar", STEPS, ("Laplace",), (TOP,)),
            ),
        ),
        Claim(
            LATER,
            "chi-square consistency: UH above PrivBayes on average (but for log ε = 0 at 5 and 10 %)",
            lambda judge: [
                *judge.more(UH, ("PrivBayes",), "chi2 1%"),
                *judge.more(UH, ("PrivBayes",), "chi2 5%", (*EPSILONS[:2], *EPSILONS[3:])),
                *judge.more(UH, ("PrivBayes",), "chi2 10%", (*EPSILONS[:2], *EPSILONS[3:])),
            ],
            most=True,
        ),
    ]


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
            most=True,
        ),
        Claim(
            LATER,
            "the three coefficients of interest overlap by around 0.75 or above in most cases (we say: 0.75 less the "
            "margin of similar overlaps)",
            lambda judge: _interest(judge, 0.75 - MARGINS["overlap"]),
            most=True,
            shown=lambda judge: f"at 0.75 itself: {count_of(_interest(judge, 0.75))}",
        ),
        Claim(
            LATER,
            "PrivBayes has the lowest overlaps of interest when log ε < 0",
            lambda judge: [
                one for measure in INTEREST for one in judge.less(("PrivBayes",), NOT_NETWORK, measure, EPSILONS[:2])
            ],
            most=True,
        ),
        Claim(
            LATER,
            "at higher ε PrivBayes comes closer to 1 than the others",
            lambda judge: [
                one for measure in INTEREST for one in judge.more(("PrivBayes",), NOT_NETWORK, measure, EPSILONS[3:])
            ],
            most=True,
        ),
        Claim(
            LATER,
            "overlaps of interest of all other methods are flat across ε",
            lambda judge: [one for measure in INTEREST for one in judge.flat(NOT_NETWORK, measure)],
        ),
        Claim(
            LATER,
            "STEPS-2 and STEPS-3 are similar in overlap",
            lambda judge: judge.similar(("STEPS-2",), ("STEPS-3",), "overlap"),
        ),
        Claim(
            LATER,
            "STEPS has slightly higher overlaps than Laplace (mean over ε; of all coefficients, of those of interest)",
            lambda judge: [
                *judge.more_overall(STEPS, ("Laplace",), "overlap"),
                *judge.more_overall(STEPS, ("Laplace",), *INTEREST),
            ],
        ),
        Claim(
            LATER,
            "UH modified has slightly smaller overlaps than STEPS and Laplace in general (means as before)",
            lambda judge: [
                *judge.less_overall(UH, ("Laplace", *STEPS), "overlap"),
                *judge.less_overall(UH, ("Laplace", *STEPS), *INTEREST),
            ],
        ),
        Claim(
            LATER,
            "conclusions: STEPS outperformed the modified universal histogram in general (mean over ε: SPECKS, "
            "consistency, overlap; as many layers)",
            lambda judge: [
                one
                for ours, theirs in zip(STEPS, UH, strict=True)
                for one in (
                    *judge.less_overall((ours,), (theirs,), "SPECKS"),
                    *judge.more_overall((ours,), (theirs,), *RATES),
                    *judge.more_overall((ours,), (theirs,), "overlap"),
                )
            ],
            most=True,
        ),
    ]


def _interest(judge: Judge, level: float) -> list[Comparison]:
    return [one for measure in INTEREST for one in judge.level(FIRST, measure, level)]
