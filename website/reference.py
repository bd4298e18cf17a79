"""Pages and parts of pages that are generated from the code, so that they cannot be out of date.

Commands and their options come from the command line itself, methods and metrics from the registries, and
public names from their signatures and docstrings. Everything is Markdown text; nothing is written to disk here.
"""

import csv
import importlib
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import typer

import understudy
from understudy import demo, errors, testing
from understudy import schema as schema_package
from understudy.cli.app import app
from understudy.cli.methods import BETTER
from understudy.cli.options import default_text
from understudy.evaluate.metric import METRICS, describe_metric
from understudy.methods.method import METHODS, describe_method
from understudy.options import Option, VerbPackage

CHOOSING = Path(__file__).parents[1] / "docs" / "choosing.csv"
SECTIONS = ("Args", "Raises", "Returns", "Yields", "Attributes", "Example", "Examples")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a pipe in a cell is written so that it does not end the cell."""
    lines = [header, ["---"] * len(header), *rows]
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


# ---- Methods and metrics ---------------------------------------------------------------------------------------------


def method_facts(name: str) -> str:
    """What a method's page ends with: facts, options and the argument, as the code has them."""
    method = describe_method(name)
    facts = [
        ("does", method.summary),
        ("guarantee", method.guarantee),
        ("needs", method.needs),
        ("limits", method.limits),
        ("source", method.source),
    ]
    parts = [
        "## Facts and options",
        f"Generated from the code. `understudy methods {name}` prints the same.",
        table(["", ""], facts),
        option_table(method.options, ""),
        *measured(name),
        "## Steps, privacy argument and differences from the source",
        "The text below is the docstring of the module that implements the method.",
        prose(inspect.getdoc(inspect.getmodule(METHODS.find(name))) or ""),
    ]
    return "\n\n".join(parts) + "\n"


def measured(name: str) -> list[str]:
    """What `docs/choosing.csv` has of a method, beside the best method in each setting; often nothing."""
    with CHOOSING.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    rows = []
    for line in found:
        if line["method"] == name:
            setting = [line[key] for key in ("table", "delta", "epsilon")]
            rivals = [one for one in found if [one[key] for key in ("table", "delta", "epsilon")] == setting]
            best = min(rivals, key=lambda one: float(one["pairs"]))
            privacy = f"δ = {line['delta']}" if float(line["delta"]) else "pure ε"
            nearest = f"{distance(best['pairs'])} (`{best['method']}`)"
            distances = (distance(line["single"]), distance(line["pairs"]))
            rows.append((line["table"], privacy, line["epsilon"], *distances, nearest))
    if not rows:
        return []
    header = ["table", "privacy", "ε", "single columns", "pairs", "pairs, nearest method"]
    said = "Mean total variation distances, lower is better: [which method for which table](../choosing.md)."
    return ["## All figures", said, table(header, rows)]


def distance(text: str) -> str:
    """A distance with three digits; a dash where there is none.

    >>> distance("0.02"), distance("nan")
    ('0.020', '–')
    """
    return "–" if math.isnan(float(text)) else f"{float(text):.3f}"


def metric_facts(name: str) -> str:
    """What a metric's page ends with: scores and options, as the code has them."""
    metric = describe_metric(name)
    scores = [(f"`{scale.name}`", scale.meaning, BETTER[scale.direction]) for scale in metric.scales]
    parts = [
        "## Scores and options",
        f"Generated from the code. `understudy metrics {name}` prints the same. The first score is the headline.",
        table(["score", "meaning", "better"], scores),
        option_table(metric.options, f"{name}."),
    ]
    return "\n\n".join(parts) + "\n"


def option_table(options: Sequence[Option], prefix: str) -> str:
    """The options with type, default and meaning."""
    if not options:
        return "There are no options."
    rows = [(f"`{prefix}{each.name}`", each.kind, f"`{default_text(each.default)}`", each.help) for each in options]
    return table(["`--set`", "value", "default", "meaning"], rows)


# ---- Commands --------------------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its arguments and options."""
    parts = [
        "# Commands",
        "Generated from the command line itself; `understudy COMMAND --help` prints the same. What each command prints "
        "with `--json` is listed in [JSON output](../json.md).",
        "Exit status: 0 done, 1 a fault in understudy, 2 usage, schema or input, 3 refused by the budget or the "
        "ledger, 4 not enough memory or disk; 128 plus the signal's number for a run that a signal ended.",
    ]
    parts += [_command(words, command) for words, command in leaves()]
    return "\n\n".join(parts) + "\n"


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it, in the order of the help page."""

    def below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield words, command
            return
        for name in command.list_commands(typer.Context(command)):
            yield from below(f"{words} {name}".strip(), inner[name])

    yield from below("", typer.main.get_command(app))


def _command(words: str, command: Any) -> str:
    context = typer.Context(command, info_name=f"understudy {words}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage:").split())
    parts = [f"## {words}", prose(command.help or ""), f"```text\n{usage}\n```"]
    rows = []
    for parameter in command.params:
        name, meaning = parameter.get_help_record(context)
        rows.append((f"`{name}`", meaning))
    if rows:
        parts.append(table(["argument or option", "meaning"], rows))
    return "\n\n".join(parts)


# ---- Public names ----------------------------------------------------------------------------------------------------


def api_page() -> str:
    """Every public name of the package with its signature and docstring."""
    parts = ["# Python API", "Generated from signatures and docstrings. `import understudy as us`."]
    names = sorted((name for name in understudy.__all__ if not name.startswith("_")), key=str.lower)
    for name in names:
        value = named(getattr(understudy, name), name)
        if not isinstance(value, ModuleType):
            parts.append(_entry(f"us.{name}", name, value))
    parts += ["## us.demo", prose(inspect.getdoc(demo) or "")]
    parts += [_entry(f"us.demo.{name}", name, value, 3) for name, value in _functions(demo)]
    parts += ["## us.schema", prose(inspect.getdoc(schema_package) or "")]
    parts += [_entry(f"us.schema.{name}", name, getattr(schema_package, name), 3) for name in schema_package.__all__]
    parts += ["## us.errors", prose(inspect.getdoc(errors) or "")]
    parts += [_entry(f"us.errors.{name}", name, value, 3) for name, value in _classes(errors)]
    parts += ["## understudy.testing", prose(inspect.getdoc(testing) or "")]
    parts += [_entry(f"testing.{name}", name, getattr(testing, name), 3) for name in testing.__all__]
    return "\n\n".join(parts) + "\n"


def named(value: object, name: str) -> object:
    """The function behind a package that can be called by its name, and everything else as it is."""
    if isinstance(value, VerbPackage):
        return vars(value)[name]
    if isinstance(value, ModuleType) and callable(value):  # `understudy.methods`, which several imports may hide
        return vars(importlib.import_module("understudy.methods.method"))[name]
    return value


def _functions(module: ModuleType) -> list[tuple[str, FunctionType]]:
    own = [(name, value) for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"]
    return [(name, value) for name, value in own if value.__module__ == module.__name__]


def _classes(module: ModuleType) -> list[tuple[str, type]]:
    own = [(name, value) for name, value in vars(module).items() if inspect.isclass(value) and name[0] != "_"]
    return [(name, value) for name, value in own if value.__module__ == module.__name__]


def _entry(title: str, name: str, value: object, level: int = 2) -> str:
    parts = [f"{'#' * level} {title}", *_described(name, value)]
    if inspect.isclass(value):
        for member, found in _members(value):
            parts.append(f"{'#' * (level + 1)} {title.split('.')[-1]}.{member}")
            parts += _described(member, found)
    return "\n\n".join(parts)


def _described(name: str, value: object) -> list[str]:
    parts = []
    if isinstance(value, property):
        parts.append("*Property.*")
    elif callable(value):
        shown = signature(value)
        parts += [f"```python\n{name}{shown}\n```"] if shown else []
    doc = inspect.getdoc(value)
    if doc and doc != inspect.getdoc(type(value)):
        parts.append(prose(doc))
    return parts


def _members(kind: type) -> list[tuple[str, object]]:
    """Public methods and properties that the package itself defines, in the order they are written."""
    found: dict[str, object] = {}
    for base in (kind, *kind.__mro__[1:]):
        if not base.__module__.startswith("understudy"):
            continue
        for name, value in vars(base).items():
            plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if not name.startswith("_") and isinstance(plain, FunctionType | property):
                found.setdefault(name, getattr(kind, name) if isinstance(value, classmethod) else plain)
    return list(found.items())


def signature(function: Callable[..., object]) -> str:
    """The signature in short words: no module paths, no private parameters, one parameter per line where it is long."""
    try:
        whole = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    kept = [one for name, one in whole.parameters.items() if not name.startswith("_") and name != "self"]
    text = _short(str(whole.replace(parameters=[one.replace(default=_default(one.default)) for one in kept])))
    if len(text) <= 90:
        return text
    shown = [_short(str(inspect.Signature([one.replace(default=_default(one.default))]))[1:-1]) for one in kept]
    if any(one.kind is one.KEYWORD_ONLY for one in kept):
        first = next(place for place, one in enumerate(kept) if one.kind is one.KEYWORD_ONLY)
        shown = [*shown[:first], "*", *(words.removeprefix("*, ") for words in shown[first:])]
    end = text.rpartition(" -> ")[2] if " -> " in text else ""
    return "(\n" + "".join(f"    {words},\n" for words in shown) + ")" + (f" -> {end}" if end else "")


class _Words:
    """A default that shows itself in words."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __repr__(self) -> str:
        return self.words


def _default(default: object) -> object:
    if default is inspect.Parameter.empty or (" at 0x" not in repr(default) and repr(default) != "<factory>"):
        return default
    return _Words("...")


def _short(text: str) -> str:
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z_])", "", text).replace("'", '"')


# ---- Docstrings as Markdown ------------------------------------------------------------------------------------------


def prose(doc: str) -> str:
    """A docstring as Markdown: sections of arguments become lists, underlined titles bold, examples code."""
    blocks = [_block(block) for block in re.split(r"\n\s*\n", doc.strip("\n"))]
    return "\n\n".join(block for block in blocks if block)


def _block(block: str) -> str:
    first, _, rest = block.partition("\n")
    if first.rstrip(":") in SECTIONS and first.endswith(":"):
        return f"**{first.rstrip(':')}**\n\n{_entries(textwrap.dedent(rest))}"
    if block.lstrip().startswith(">>>"):
        return f"```pycon\n{textwrap.dedent(block).strip()}\n```"
    if re.fullmatch(r"-{3,}", rest.partition("\n")[0].strip()) and rest:
        body = rest.partition("\n")[2]
        return f"**{first}**" + (f"\n\n{_block(body)}" if body else "")
    if all(line.startswith("    ") for line in block.splitlines()):
        return f"```text\n{textwrap.dedent(block).strip()}\n```"
    return block.strip("\n")


def _entries(text: str) -> str:
    """The lines of a section: each entry begins at the margin, what is indented belongs to it."""
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and entries:
            entries[-1] += " " + line.strip()
        elif line.strip():
            entries.append(line.strip())
    shown = []
    for entry in entries:
        names, colon, meaning = entry.partition(": ")
        plain = re.fullmatch(r"[\w*]+(?:, [\w*]+)*", names)
        marked = ", ".join(f"`{name}`" for name in names.split(", ")) if colon and plain else ""
        shown.append(f"* {marked}: {meaning}" if marked else f"* {entry}")
    return "\n".join(shown)


def all_methods() -> tuple[str, ...]:
    """Every method the registry knows by itself."""
    return tuple(METHODS.built_in)


def all_metrics() -> tuple[str, ...]:
    """Every metric the registry knows by itself."""
    return tuple(METRICS.built_in)
