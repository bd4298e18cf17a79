"""Every statement that the paper of 2019 prints about its results on young voters, and how we decide it."""

from collections.abc import Sequence

from studies.verdicts import Comparison, above, against, alike
from studies.voters.combine import somewhere
from studies.voters.judge import SLIGHT, Claim, Judge, powers, shorter
from studies.voters.measures import EPSILONS
from studies.writing import estimate

__all__ = ["earlier_claims"]

AIC = ("AIC-2", "AIC-3")
PAIRS = tuple((ours, theirs) for ours in AIC for theirs in ("Laplace", "RP-2"))
RATES = ("chi2 1%", "chi2 5%", "chi2 10%")
COUNTED = ("same sign", "covered")
LOW, HIGH, TOP = EPSILONS[1], EPSILONS[3], EPSILONS[4]
EARLIER = "2019"
HALF_OF_WIDTHS = 0.15
"""How far a share of shorter intervals may lie from another and still be called about the same."""


def earlier_claims() -> list[Claim]:
    """All statements, in the order of printing."""
    return [*_specks(), *_by_epsilon(), *_tables(), *_model()]


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
            "overall, and in the abstract: STEPS by AIC outperforms Laplace and Random Partition-2 in SPECKS (mean "
            "over ε)",
            lambda judge: judge.less_overall(AIC, ("Laplace", "RP-2"), "SPECKS"),
        ),
        Claim(
            EARLIER,
            "conclusions: STEPS by AIC has a smaller SPECKS than Laplace across the examined range of ε",
            lambda judge: judge.less(AIC, ("Laplace",), "SPECKS"),
        ),
    ]


def _by_epsilon() -> list[Claim]:
    return [
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
            "the lead of both STEPS over the two others is largest at ε = e",
            _largest_lead,
            shown=lambda judge: "; ".join(_leads(judge, pair) for pair in PAIRS),
        ),
        Claim(
            EARLIER,
            "SPECKS of STEPS-2 and the others differ more at ε = 1/e and e than at the other ε",
            lambda judge: [
                one
                for other in ("Laplace", "RP-2")
                for high in (LOW, HIGH)
                for one in _larger_lead(judge, ("AIC-2", other), high, (EPSILONS[0], EPSILONS[2], TOP))
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


def _lead(judge: Judge, epsilon: float, pair: tuple[str, str]) -> list[float]:
    """How far SPECKS of the first lies below that of the second, repeat by repeat."""
    ours, theirs = (judge.values(system, epsilon, "SPECKS") for system in pair)
    return [their - our for our, their in zip(ours, theirs, strict=True)]


def _leads(judge: Judge, pair: tuple[str, str]) -> str:
    leads = ", ".join(f"{powers(epsilon)} {estimate(_lead(judge, epsilon, pair))}" for epsilon in EPSILONS)
    return f"lead of {pair[0]} over {pair[1]}: {leads}"


def _larger_lead(judge: Judge, pair: tuple[str, str], at: float, elsewhere: Sequence[float]) -> list[Comparison]:
    """Whether the lead of one over another is larger at one ε than at each of others."""
    here = _lead(judge, at, pair)
    return [above(here, _lead(judge, epsilon, pair), judge.margin("SPECKS")) for epsilon in elsewhere]


def _largest_lead(judge: Judge) -> list[Comparison]:
    elsewhere = [epsilon for epsilon in EPSILONS if epsilon != HIGH]
    return [one for pair in PAIRS for one in _larger_lead(judge, pair, HIGH, elsewhere)]


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
        *_intervals(),
        Claim(
            EARLIER,
            "overall, Laplace and STEPS-2 do not differ significantly in the regression, although 8 and 17 signs are "
            "printed (we say: signs, coverage and widths are similar at 1/e and e)",
            _same_model,
            shown=lambda judge: "in shares of the coefficients",
        ),
        Claim(
            EARLIER,
            "… nor does the increase of ε affect the regression much (we say: the same numbers are similar at both ε)",
            _same_at_both,
            shown=lambda judge: "in shares of the coefficients",
        ),
        Claim(
            EARLIER,
            "conclusions: STEPS outperformed Laplace in some of the feasibility analyses at both small ε (we say: "
            "STEPS-2 in at least one of l1, consistency, signs, coverage; at 1/e and at e)",
            lambda judge: [somewhere(list(_analyses(judge, at).values())) for at in (LOW, HIGH)],
            shown=lambda judge: (
                "best analysis of each ε, in units of its margin; clearly better: "
                + "; ".join(f"at {powers(at)} in {_won(judge, at)}" for at in (LOW, HIGH))
            ),
        ),
    ]


def _intervals() -> list[Claim]:
    return [
        Claim(
            EARLIER,
            "intervals that cover the original coefficient at ε = 1/e: STEPS-2 24, Laplace slightly fewer (21)",
            lambda judge: judge.more(("AIC-2",), ("Laplace",), "covered", (LOW,)),
            shown=lambda judge: _both(judge, LOW, "covered", ".1f"),
            slight=True,
        ),
        Claim(
            EARLIER,
            "… coverage by Laplace grows from 1/e to e (21 to 25)",
            lambda judge: [_more_at(judge, "Laplace", "covered", HIGH, LOW)],
        ),
        Claim(
            EARLIER,
            "… coverage by STEPS-2 falls from 1/e to e (24 to 21)",
            lambda judge: [_more_at(judge, "AIC-2", "covered", LOW, HIGH)],
        ),
        Claim(
            EARLIER,
            "… so that at e Laplace covers more coefficients (25) than STEPS-2 (21)",
            lambda judge: judge.less(("AIC-2",), ("Laplace",), "covered", (HIGH,)),
            shown=lambda judge: _both(judge, HIGH, "covered", ".1f"),
        ),
        Claim(
            EARLIER,
            "the four numbers of covered coefficients are 21 to 25 of 32 (we ask: more than half)",
            _half_covered,
        ),
        Claim(
            EARLIER,
            f"intervals of STEPS-2 shorter than those of Laplace: 15 of 32 at 1/e, 18 at e (we say: about half of "
            f"them, give or take {HALF_OF_WIDTHS:.0%})",
            lambda judge: [_about_half(judge, at) for at in (LOW, HIGH)],
            shown=lambda judge: f"share shorter: {_shares_shorter(judge)}",
        ),
        Claim(
            EARLIER,
            "… more intervals of STEPS-2 are shorter at e than at 1/e",
            lambda judge: [above(shorter(judge, HIGH), shorter(judge, LOW), SLIGHT)],
            shown=lambda judge: f"share shorter: {_shares_shorter(judge)}",
        ),
    ]


def _shares_shorter(judge: Judge) -> str:
    return ", ".join(f"{estimate(shorter(judge, at))} at {powers(at)}" for at in (LOW, HIGH))


def _about_half(judge: Judge, at: float) -> Comparison:
    found = shorter(judge, at)
    return alike(found, [0.5] * len(found), HALF_OF_WIDTHS)


def _shares(judge: Judge, system: str, at: float, measure: str) -> list[float]:
    """A number of coefficients as a share of all."""
    return [value / judge.coefficients for value in judge.values(system, at, measure)]


def _same_model(judge: Judge) -> list[Comparison]:
    """Whether STEPS-2 and Laplace are similar in all that the paper counts."""
    numbers = [
        alike(_shares(judge, "AIC-2", at, measure), _shares(judge, "Laplace", at, measure), SLIGHT)
        for measure in COUNTED
        for at in (LOW, HIGH)
    ]
    return [*numbers, *(_about_half(judge, at) for at in (LOW, HIGH))]


def _same_at_both(judge: Judge) -> list[Comparison]:
    """Whether all that the paper counts is similar at both ε."""
    numbers = [
        alike(_shares(judge, system, HIGH, measure), _shares(judge, system, LOW, measure), SLIGHT)
        for measure in COUNTED
        for system in ("AIC-2", "Laplace")
    ]
    return [*numbers, alike(shorter(judge, HIGH), shorter(judge, LOW), HALF_OF_WIDTHS)]


def _analyses(judge: Judge, at: float) -> dict[str, Comparison]:
    """Whether STEPS-2 is better than Laplace at one ε, analysis by analysis."""
    ours, theirs = (judge.over(system, RATES, (at,)) for system in ("AIC-2", "Laplace"))
    return {
        "l1": judge.less(("AIC-2",), ("Laplace",), "half l1", (at,))[0],
        "consistency": above(ours, theirs, judge.margin(RATES[0])),
        "signs": judge.more(("AIC-2",), ("Laplace",), "same sign", (at,))[0],
        "coverage": judge.more(("AIC-2",), ("Laplace",), "covered", (at,))[0],
    }


def _won(judge: Judge, at: float) -> str:
    return ", ".join(name for name, one in _analyses(judge, at).items() if one.answer == "yes") or "none"


def _more_at(judge: Judge, system: str, measure: str, first: float, second: float) -> Comparison:
    """Whether a system has more of a measure at one ε than at another."""
    values = judge.values(system, first, measure), judge.values(system, second, measure)
    return above(*values, judge.margin(measure))


def _half_covered(judge: Judge) -> list[Comparison]:
    half = judge.coefficients / 2
    return [against(judge.values(name, at, "covered"), half) for name in ("AIC-2", "Laplace") for at in (LOW, HIGH)]
