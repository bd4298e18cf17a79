"""The two written forms of a statement, made from the same data: JSON for programs, Markdown for people."""

from collections.abc import Mapping, Sequence
from typing import cast

from understudy.errors import Problem, ReleaseError
from understudy.marginals.answer import Law
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency
from understudy.release import wording
from understudy.release.statement import Charge, LedgerFacts, Statement, fraction_of
from understudy.release.unread import Odd
from understudy.release.wording import escape_markdown
from understudy.schema import Unit

__all__ = ["FORMAT", "read_statement", "statement_document", "statement_markdown"]

FORMAT = "understudy statement, format 1"
Document = Mapping[str, object]


def statement_document(statement: Statement) -> dict[str, object]:
    """The statement as JSON values; `read_statement` gives the same statement back."""
    unit = statement.unit
    return (
        {
            "format": FORMAT,
            "promise": statement.promise,
            "refused": statement.refused,
            "run": statement.run,
            "date": statement.date,
            "title": statement.title,
            "method": statement.method,
            "variant": statement.variant,
            "currency": statement.currency,
            "epsilon": statement.epsilon,
            "delta": statement.delta,
            "odds": statement.odds,
            "schema_sha256": statement.schema_digest,
            "unit": {"column": unit.column, "rows": unit.rows, "note": unit.note, "text": wording.unit_text(unit)},
            "neighbours": wording.NEIGHBOURS,
            "contribution_bound": unit.rows,
            "budget": {"epsilon": statement.budget.epsilon, "delta": statement.budget.delta},
            "units": {"epsilon": f"1/{UNIT}", "rho": f"1/{UNIT}", "delta": f"1/{DELTA_UNIT}"},
            "granted": _cost_document(statement.granted),
            "spent": _cost_document(statement.spent),
            "as_planned": statement.as_planned,
            "charges": [_charge_document(charge) for charge in statement.charges],
            "ledger": {
                "dataset": statement.ledger.dataset,
                "head": statement.ledger.head,
                "releases": statement.ledger.releases,
                "epsilon": statement.ledger.epsilon,
                "delta": statement.ledger.delta,
                "text": wording.ledger_text(statement.ledger.dataset),
            },
            "copies": {
                "count": statement.copies,
                "mode": statement.copies_mode,
                "text": wording.copies_text(statement.copies, statement.copies_mode),
            },
            "left_out": list(statement.left_out),
            "not_protected": list(statement.not_protected),
            "versions": dict(statement.versions),
        }
        | _label_document(statement)
        | _odd_document(statement)
    )


def _label_document(statement: Statement) -> dict[str, object]:
    """The second relation of a method that labels public records; nothing for all others."""
    if not statement.labels:
        return {}
    claim = statement.label_claim
    document = {
        "columns": list(statement.labels),
        "epsilon": None if claim is None else claim[0],
        "delta": None if claim is None else claim[1],
        "text": wording.label_text(statement.labels, claim),
    }
    return {"label_change": document}


def _odd_document(statement: Statement) -> dict[str, object]:
    """What is said about values that cannot be read; nothing where there is nothing to say."""
    document: dict[str, object] = {"rows_left_out": wording.DROPPED} if statement.drops_unreadable else {}
    if statement.odd:
        document["odd_values"] = [
            {
                "column": one.column,
                "meaning": one.meaning,
                "share": one.share,
                "labelled": one.labelled,
                "text": one.text,
            }
            for one in statement.odd
        ]
    return document


def _read_odd(document: Document) -> Odd:
    share, meaning = _number(document["share"]), _text(document["meaning"])
    if not 0.0 <= share <= 1.0 or meaning not in ("unreadable", "missing", "other"):
        raise ValueError("odd values")
    return Odd(_text(document["column"]), meaning, share, _truth(document["labelled"]))


def read_statement(document: object) -> Statement:
    """The statement a JSON document holds; what is derived (claim, sentences) is recomputed, not trusted.

    Raises:
        ReleaseError: when a field is missing or has the wrong form.
    """
    try:
        return _read(_mapping(document))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        problem = Problem("statement.json", "does not have the form of a statement.", "Restore the folder.")
        raise ReleaseError([problem]) from error


def _read(document: Document) -> Statement:
    if document["format"] != FORMAT:
        raise ValueError(FORMAT)
    unit, budget = _mapping(document["unit"]), _mapping(document["budget"])
    ledger, copies = _mapping(document["ledger"]), _mapping(document["copies"])
    currency = _text(document["currency"])
    if currency not in ("pure", "concentrated"):
        raise ValueError(currency)
    return Statement(
        run=_text(document["run"]),
        date=_text(document["date"]),
        title=_text(document["title"]),
        method=_text(document["method"]),
        currency=cast(Currency, currency),
        budget=Budget(_number(budget["epsilon"]), _number(budget["delta"])),
        unit=Unit(_text_or_none(unit["column"]), _whole(unit["rows"]), _text(unit["note"])),
        schema_digest=_text(document["schema_sha256"]),
        charges=tuple(_read_charge(_mapping(one)) for one in _sequence(document["charges"])),
        granted=_read_cost(_mapping(document["granted"])),
        ledger=LedgerFacts(
            _text_or_none(ledger["dataset"]),
            _text(ledger["head"]),
            _whole(ledger["releases"]),
            None if ledger["epsilon"] is None else _number(ledger["epsilon"]),
            None if ledger["delta"] is None else _number(ledger["delta"]),
        ),
        copies=_whole(copies["count"]),
        copies_mode=_text(copies["mode"]),
        as_planned=_truth(document["as_planned"]),
        left_out=tuple(_text(name) for name in _sequence(document["left_out"])),
        refused=_text(document["refused"]),
        labels=tuple(_text(name) for name in _sequence(_mapping(document.get("label_change", {})).get("columns", []))),
        versions={_text(name): _text(version) for name, version in _mapping(document["versions"]).items()},
        drops_unreadable="rows_left_out" in document,
        odd=tuple(_read_odd(_mapping(one)) for one in _sequence(document.get("odd_values", []))),
    )


def statement_markdown(statement: Statement) -> str:
    """The statement as Markdown: promise, odds, facts, charges, limits."""
    lines = [f"# Privacy statement: {escape_markdown(statement.title or 'untitled table')}", ""]
    lines += [f"**{statement.promise}**", "", statement.odds, ""]
    lines += [
        "This folder holds synthetic data. Its rows are drawn from a fitted model, not copied from the private table.",
        "",
    ]
    lines += ["| Fact | Value |", "|---|---|"]
    lines += [f"| {name} | {escape_markdown(text)} |" for name, text in statement.facts()]
    if statement.odd:
        lines += ["", "## Values that could not be read", "", "Estimated from the noisy answers:", ""]
        lines += [f"- {escape_markdown(one.text)}" for one in statement.odd]
    lines += ["", "## Charges", "", "| Run | Step | Cost | Noise | Scale |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(map(escape_markdown, row))} |" for row in charge_rows(statement)]
    if any(charge.rate is not None for charge in statement.charges):
        lines += ["", escape_markdown(wording.CHOICES)]
    lines += ["", "## Not protected, or outside the promise", ""]
    lines += [f"- {escape_markdown(text)}" for text in statement.not_protected]
    lines += ["", "## Columns left out", ""]
    if statement.left_out:
        lines += [f"- {escape_markdown(name)} (not declared in the schema)" for name in statement.left_out]
    else:
        lines += ["None: every column of the table is declared in the schema."]
    return "\n".join(lines) + "\n"


def charge_rows(statement: Statement) -> list[tuple[str, str, str, str, str]]:
    """The charges as texts: run, step, cost, noise, scale."""
    return [
        (str(charge.run), charge.step, str(charge.cost), charge.noise, charge.scale) for charge in statement.charges
    ]


def _cost_document(cost: Cost) -> dict[str, object]:
    return {"epsilon_units": cost.epsilon, "rho_units": cost.rho, "delta_units": cost.delta, "text": str(cost)}


def _read_cost(document: Document) -> Cost:
    return Cost(*(_whole(document[f"{name}_units"]) for name in ("epsilon", "rho", "delta")))


def _charge_document(charge: Charge) -> dict[str, object]:
    law = charge.law
    # Charges of plain counts are written as they always were, so that older folders still verify.
    more: dict[str, object] = {} if charge.unit == 1 else {"unit": charge.unit}
    if charge.sensitivity is not None:
        more |= {"sensitivity": str(charge.sensitivity), "monotone": charge.monotone}
    return more | {
        "run": charge.run,
        "step": charge.step,
        "cost": _cost_document(charge.cost),
        "law": None if law is None else {"kind": law.kind, "parameter": str(law.parameter), "scale": law.scale},
        "rate": None if charge.rate is None else str(charge.rate),
    }


def _read_charge(document: Document) -> Charge:
    law = None
    if document["law"] is not None:
        stored = _mapping(document["law"])
        kind = stored["kind"]
        if kind != "laplace" and kind != "gaussian":
            raise ValueError("law")
        law = Law("laplace" if kind == "laplace" else "gaussian", fraction_of(stored["parameter"]))
    rate = None if document["rate"] is None else fraction_of(document["rate"])
    cost = _read_cost(_mapping(document["cost"]))
    unit = _whole(document.get("unit", 1))
    if unit < 1:
        raise ValueError("unit")
    moved = None if "sensitivity" not in document else fraction_of(document["sensitivity"])
    monotone = _truth(document.get("monotone", False))
    return Charge(_whole(document["run"]), _text(document["step"]), cost, law, rate, unit, moved, monotone)


def _mapping(value: object) -> Document:
    if not isinstance(value, Mapping):
        raise TypeError("mapping")
    return value


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError("list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("whole number")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("number")
    return value
