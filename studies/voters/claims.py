"""Every statement that the two papers print about their results on young voters, and how we decide it."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from studies.verdicts import Comparison, above, against, alike, count_of
from studies.voters.judge import Claim, Judge, powers, shorter
from studies.voters.measures import EPSILONS
from studies.writing import estimate

__all__ = ["claims"]

STEPS, UH, AIC = ("STEPS-2", "STEPS-3"), ("UH-2", "UH-3"), ("AIC-2", "AIC-3")
FIRST = ("Laplace", *STEPS, *UH, "PrivBayes")
NOT_NETWORK = ("Laplace", *STEPS, *UH)
RATES = ("chi2 1%", "chi2 5%", "chi2 10%")
INTEREST = ("overlap preregistration_state=yes", "overlap registered=yes",
            "overlap preregistration_state=yes:registered=yes")  # fmt: skip
LOW, HIGH, TOP = EPSILONS[1], EPSILONS[3], EPSILONS[4]
LATER, EARLIER = "2020", "2019"


def claims() -> list[Claim]:
    """All statements, in the order of printing: the paper of 2020, then that of 2019."""
    return [*_specks(), *_tests(), *_model(), *_earlier_specks(), *_earlier_tables(), *_earlier_model()]


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
            "the three coefficients of interest overlap by about 0.75 or more in most cases",
            lambda judge: _interest(judge, 0.75),
            most=True,
            shown=lambda judge: f"at 0.7: {count_of(_interest(judge, 0.7))}",
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


def _earlier_specks() -> list[Claim]:
    return [
        Claim(
            EARLIER,
            "equal shares for all layers give a worse SPECKS than half for the full table (STEPS by AIC)",
            lambda judge: [one for system in AIC for one in judge.more((f"{system} equal",), (system,), "SPECKS")],
        ),
        Claim(
            EARLIER,
            "SPECKS falls as ε grows (Laplace, STEPS by AIC, Random Partition)",
            lambda judge: judge.falls(("Laplace", *AIC, "RP-2"), "SPECKS"),
        ),
        Claim(
            EARLIER,
            "STEPS-2 and STEPS-3 by AIC are very similar in SPECKS",
            lambda judge: judge.similar(("AIC-2",), ("AIC-3",), "SPECKS"),
        ),
        Claim(
            EARLIER,
            "STEPS by AIC outperforms Laplace and Random Partition-2 in SPECKS overall (mean over ε)",
            lambda judge: judge.less_overall(AIC, ("Laplace", "RP-2"), "SPECKS"),
        ),
        Claim(
            EARLIER,
            "conclusions: STEPS by AIC has a smaller SPECKS than Laplace across the examined range of ε",
            lambda judge: judge.less(AIC, ("Laplace",), "SPECKS"),
        ),
        Claim(
            EARLIER,
            "for ε < 1 Random Partition-2 is similar to STEPS by AIC",
            lambda judge: judge.similar(("RP-2",), AIC, "SPECKS", EPSILONS[:2]),
        ),
        Claim(
            EARLIER,
            "for ε < 1 all three outperform Laplace",
            lambda judge: judge.less((*AIC, "RP-2"), ("Laplace",), "SPECKS", EPSILONS[:2]),
        ),
        Claim(
            EARLIER,
            "the lead of STEPS over the two others is largest at ε = e",
            _largest_lead,
            shown=lambda judge: (
                "lead of STEPS-2 over Laplace: "
                + ", ".join(f"{powers(epsilon)} {estimate(_lead(judge, epsilon))}" for epsilon in EPSILONS)
            ),
        ),
        Claim(
            EARLIER,
            "SPECKS of STEPS-2 and the others differ more at ε = 1/e and e than at the other ε",
            lambda judge: [
                one
                for other in ("Laplace", "RP-2")
                for high in (LOW, HIGH)
                for one in _larger_lead(judge, other, high, (EPSILONS[0], EPSILONS[2], TOP))
            ],
        ),
        Claim(
            EARLIER,
            "at ε = e² Laplace and STEPS are equal",
            lambda judge: judge.similar(AIC, ("Laplace",), "SPECKS", (TOP,)),
        ),
        Claim(
            EARLIER,
            "… and all are better than Random Partition-2",
            lambda judge: judge.less(("Laplace", *AIC), ("RP-2",), "SPECKS", (TOP,)),
        ),
    ]


def _lead(judge: Judge, epsilon: float, other: str = "Laplace") -> list[float]:
    """How far SPECKS of STEPS-2 lies below that of another, repeat by repeat."""
    pairs = zip(judge.values(other, epsilon, "SPECKS"), judge.values("AIC-2", epsilon, "SPECKS"), strict=True)
    return [theirs - ours for theirs, ours in pairs]


def _larger_lead(judge: Judge, other: str, at: float, elsewhere: Sequence[float]) -> list[Comparison]:
    """Whether the lead over another is larger at one ε than at each of others."""
    here = _lead(judge, at, other)
    return [above(here, _lead(judge, epsilon, other), judge.margin("SPECKS")) for epsilon in elsewhere]


def _largest_lead(judge: Judge) -> list[Comparison]:
    elsewhere = [epsilon for epsilon in EPSILONS if epsilon != HIGH]
    return [one for other in ("Laplace", "RP-2") for one in _larger_lead(judge, other, HIGH, elsewhere)]


def _earlier_tables() -> list[Claim]:
    return [
        Claim(
            EARLIER,
            "l1 at ε = 1/e: STEPS-2 (43,065.6) below Laplace (43,908.4)",
            lambda judge: judge.less(("AIC-2",), ("Laplace",), "half l1", (LOW,)),
            shown=lambda judge: _both(judge, LOW, "half l1", ",.0f"),
        ),
        Claim(
            EARLIER,
            "l1 at ε = e: similar (STEPS-2 42,072.7, Laplace 42,068.2)",
            lambda judge: judge.similar(("AIC-2",), ("Laplace",), "half l1", (HIGH,)),
            shown=lambda judge: _both(judge, HIGH, "half l1", ",.0f"),
        ),
        Claim(
            EARLIER,
            "chi-square consistency at ε = 1/e: STEPS-2 above Laplace at the 1 and 5 % levels",
            lambda judge: [one for rate in RATES[:2] for one in judge.more(("AIC-2",), ("Laplace",), rate, (LOW,))],
            shown=lambda judge: _both(judge, LOW, "chi2 5%", ".3f"),
        ),
        Claim(
            EARLIER,
            "… and similar at the 10 % level",
            lambda judge: judge.similar(("AIC-2",), ("Laplace",), "chi2 10%", (LOW,)),
        ),
        Claim(
            EARLIER,
            "chi-square consistency at ε = e: similar",
            lambda judge: [one for rate in RATES for one in judge.similar(("AIC-2",), ("Laplace",), rate, (HIGH,))],
            shown=lambda judge: _both(judge, HIGH, "chi2 5%", ".3f"),
        ),
    ]


def _both(judge: Judge, epsilon: float, measure: str, form: str) -> str:
    ours = judge.mean("AIC-2", epsilon, measure), judge.mean("Laplace", epsilon, measure)
    parts = [f"{one.mean:{form}} ± {one.half:{form}}" for one in ours]
    return f"STEPS-2 {parts[0]}, Laplace {parts[1]}"


def _earlier_model() -> list[Claim]:
    return [
        Claim(
            EARLIER,
            "coefficients of the same sign (of 32) at ε = 1/e: STEPS-2 17, Laplace 8",
            lambda judge: judge.more(("AIC-2",), ("Laplace",), "same sign", (LOW,)),
            shown=lambda judge: _both(judge, LOW, "same sign", ".1f"),
        ),
        Claim(
            EARLIER,
            "coefficients of the same sign at ε = e: STEPS-2 23, Laplace 15",
            lambda judge: judge.more(("AIC-2",), ("Laplace",), "same sign", (HIGH,)),
            shown=lambda judge: _both(judge, HIGH, "same sign", ".1f"),
        ),
        Claim(
            EARLIER,
            "both have more of the same sign at e than at 1/e",
            lambda judge: [_more_at(judge, name, "same sign", HIGH, LOW) for name in ("AIC-2", "Laplace")],
        ),
        Claim(
            EARLIER,
            "intervals that cover the original coefficient at ε = 1/e: Laplace 21, STEPS-2 24 (slightly more)",
            lambda judge: judge.more(("AIC-2",), ("Laplace",), "covered", (LOW,)),
            shown=lambda judge: _both(judge, LOW, "covered", ".1f"),
        ),
        Claim(
            EARLIER,
            "… and at ε = e: Laplace 25, STEPS-2 21: Laplace gains with ε, STEPS-2 loses",
            lambda judge: [
                _more_at(judge, "Laplace", "covered", HIGH, LOW),
                _more_at(judge, "AIC-2", "covered", LOW, HIGH),
            ],
            shown=lambda judge: _both(judge, HIGH, "covered", ".1f"),
        ),
        Claim(EARLIER, "… so 21 to 25 of 32 are covered (we ask: more than half)", _half_covered),
        Claim(
            EARLIER,
            "intervals of STEPS-2 shorter than those of Laplace: 15 of 32 at 1/e, 18 at e (about half)",
            lambda judge: [alike(shorter(judge, at), [0.5] * len(shorter(judge, at)), 0.15) for at in (LOW, HIGH)],
            shown=lambda judge: (
                f"share shorter: {statistics.fmean(shorter(judge, LOW)):.2f} at 1/e, "
                f"{statistics.fmean(shorter(judge, HIGH)):.2f} at e"
            ),
        ),
        Claim(
            EARLIER,
            "overall, Laplace and STEPS-2 do not differ in the regression, nor does ε matter much",
            lambda judge: [
                *judge.similar(("AIC-2",), ("Laplace",), "overlap", (LOW, HIGH)),
                *(
                    alike(judge.values(name, LOW, "overlap"), judge.values(name, HIGH, "overlap"), 0.05)
                    for name in ("AIC-2", "Laplace")
                ),
            ],
            shown=lambda judge: (
                f"overlap at 1/e: {_both(judge, LOW, 'overlap', '.3f')}; at e: {_both(judge, HIGH, 'overlap', '.3f')}"
            ),
        ),
    ]


def _more_at(judge: Judge, system: str, measure: str, first: float, second: float) -> Comparison:
    """Whether a system has more of a measure at one ε than at another."""
    values = judge.values(system, first, measure), judge.values(system, second, measure)
    return above(*values, judge.margin(measure))


def _half_covered(judge: Judge) -> list[Comparison]:
    half = judge.coefficients / 2
    return [against(judge.values(name, at, "covered"), half) for name in ("AIC-2", "Laplace") for at in (LOW, HIGH)]
