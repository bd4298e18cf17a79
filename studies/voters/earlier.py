"""Every statement that the paper of 2019 prints about its results on young voters, and how we decide it."""

import statistics
from collections.abc import Sequence

from studies.verdicts import Comparison, above, against, alike
from studies.voters.judge import Claim, Judge, powers, shorter
from studies.voters.measures import EPSILONS
from studies.writing import estimate

__all__ = ["earlier_claims"]

AIC = ("AIC-2", "AIC-3")
RATES = ("chi2 1%", "chi2 5%", "chi2 10%")
LOW, HIGH, TOP = EPSILONS[1], EPSILONS[3], EPSILONS[4]
EARLIER = "2019"


def earlier_claims() -> list[Claim]:
    """All statements, in the order of printing."""
    return [*_specks(), *_tables(), *_model()]


def _specks() -> list[Claim]:
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
            "overall, STEPS-2 and STEPS-3 by AIC are very similar in SPECKS (mean over ε)",
            lambda judge: [judge.similar_overall("AIC-2", "AIC-3", "SPECKS")],
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


def _tables() -> list[Claim]:
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


def _model() -> list[Claim]:
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
