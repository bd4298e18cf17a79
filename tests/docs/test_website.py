"""The documentation site: everything is on it, generated parts are whole, links lead somewhere, pictures are current.

`make docs` builds it; here is what can be held against the source without building.
"""

import csv
import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from website import hooks, links, pictures, reference

import understudy
from tests.cli.terminal import run
from understudy import errors, testing
from understudy import schema as schema_package
from understudy.cli.app import ORDER
from understudy.cli.options import default_text
from understudy.evaluate.metric import METRICS
from understudy.methods.method import METHODS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
COMMANDS, API = reference.commands_page(), reference.api_page()


def _places(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from _places(part)


def test_every_page_has_its_place_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [next(iter(part)) for part in nav] == ["Start", "Tutorials", "How-to", "Reference", "Explanation"]
    assert sorted(_places(nav)) == sorted([*WRITTEN, *hooks.GENERATED, *hooks.FROM_ROOT.values()])


# ---- Links -----------------------------------------------------------------------------------------------------------


def _anchors(path: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def _broken(path: Path) -> list[str]:
    text = hooks.CODE.sub("", path.read_text(encoding="utf-8"))
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        place, _, anchor = target.partition("#")
        goal = (path.parent / place).resolve() if place else path
        if ":" in place or (goal.exists() and (not anchor or anchor in _anchors(goal))):
            continue
        found.append(target)
    return found


@pytest.mark.parametrize("name", [*(f"docs/{place}" for place in WRITTEN), *hooks.FROM_ROOT, "README.md"])
def test_links_work_in_the_source_tree(name: str) -> None:
    assert _broken(ROOT / name) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n\n## A part\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#a-part) [b](other.md#no-part) [c](none.md) `[d](none.md)`", encoding="utf-8")
    assert _broken(page) == ["other.md#no-part", "none.md"]


@pytest.mark.parametrize(
    ("place", "target", "wanted"),
    [
        ("index.md", "../PRIVACY.md", "[x](project/privacy.md)"),
        ("explanation/promise.md", "../../PRIVACY.md#the-promise", "[x](../project/privacy.md#the-promise)"),
        ("project/contributing.md", "docs/evaluate.md", "[x](../evaluate.md)"),
        ("project/contributing.md", "ARCHITECTURE.md", "[x](architecture.md)"),
        ("project/benchmarks.md", "peers", "x (`benchmarks/peers`)"),
        ("index.md", "https://example.org/a", "[x](https://example.org/a)"),
        ("index.md", "none.md", "[x](none.md)"),
    ],
)
def test_links_are_led_to_where_the_site_has_them(place: str, target: str, wanted: str) -> None:
    assert hooks.relinked(place, "x", target) == wanted


def test_the_check_of_a_built_site_finds_what_is_wrong(tmp_path: Path) -> None:
    good = '<h1 id="here">x</h1><a href="b.html#there">b</a><a href="#here">a</a><a href="https://example.org">c</a>'
    (tmp_path / "a.html").write_text(good, encoding="utf-8")
    (tmp_path / "b.html").write_text('<h1 id="there">y</h1><img src="data:image/png;base64,AA">', encoding="utf-8")
    assert links.problems(tmp_path) == []
    bad = '<script src="https://cdn.example.org/x.js"></script><a href="b.html#none"></a><img src="c.png">'
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    (tmp_path / "bad.css").write_text("@font-face {src: url('//fonts.example.org/f.woff')}", encoding="utf-8")
    assert links.problems(tmp_path) == [
        "bad.html: loads https://cdn.example.org/x.js from a network",
        "bad.html: links to b.html#none, but that page has no such place",
        "bad.html: links to c.png, which is not there",
        "bad.css: loads //fonts.example.org/f.woff from a network",
    ]


def test_a_site_without_pages_is_no_site(tmp_path: Path) -> None:
    assert links.problems(tmp_path) == [f"{tmp_path}: holds no page"]


# ---- Generated parts -------------------------------------------------------------------------------------------------


def _section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _leaves() -> Iterator[str]:
    """Every command that the help pages name, found by asking them."""
    for name in ORDER:
        inner = run(name, "--help").out.partition("\nCommands:\n")[2]
        found = re.findall(r"^  (\w+)  ", inner, re.MULTILINE)
        yield from (f"{name} {word}" for word in found) if found else [name]


def test_the_reference_has_every_command_and_option() -> None:
    commands = list(_leaves())
    assert {"schema draft", "ledger verify", "synthesize"} <= set(commands)
    assert re.findall(r"^## (.+)$", COMMANDS, re.MULTILINE) == commands
    for words in commands:
        page = run(*words.split(), "--help").out.partition("\nOptions:\n")[2]
        options = set(re.findall(r"(?<=[ ,])--[a-z][a-z-]+", "\n".join(line[:40] for line in page.splitlines())))
        missing = {option for option in options - {"--help"} if f"{option}" not in _section(COMMANDS, words)}
        assert options, words
        assert not missing, words


def test_the_reference_has_every_public_name() -> None:
    titles = set(re.findall(r"^##+ (.+)$", API, re.MULTILINE))
    public = {name for name in understudy.__all__ if not name.startswith("_")}
    assert {f"us.{name}" for name in public} <= titles
    assert {f"us.schema.{name}" for name in schema_package.__all__} <= titles
    assert {f"testing.{name}" for name in testing.__all__} <= titles
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert {f"us.errors.{name}" for name in raised} <= titles
    for kind in (understudy.Release, understudy.Schema, understudy.Synthesizer, understudy.Ledger):
        own = {name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")}
        assert own
        assert {f"{kind.__name__}.{name}" for name in own} <= titles


def test_signatures_hide_what_is_private_and_keep_what_is_public() -> None:
    shown = _section(API, "us.synthesize").partition("```python")[2].partition("```")[0]
    named = set(re.findall(r"^    (\w+):", shown, re.MULTILINE))
    assert named == set(inspect.signature(understudy.synthesize).parameters)
    assert "_environment" not in API
    assert " at 0x" not in API


@pytest.mark.parametrize("name", METHODS.built_in)
def test_a_method_s_page_ends_with_all_its_options(name: str) -> None:
    kind = METHODS.find(name)
    page = hooks.with_facts(f"methods/{name}.md", "# Title\n\nText.\n")
    assert page.startswith(f"# Title\n\n![How {name} works](pictures/{name}.svg)\n\nText.")
    for field in dataclasses.fields(kind):
        assert f"| `{field.name}` | " in page
        assert f" | `{default_text(field.default)}` | {field.metadata['help']} |" in page
    assert "Privacy" in page.partition("## Steps, privacy argument")[2]


@pytest.mark.parametrize("name", METRICS.built_in)
def test_a_metric_s_page_ends_with_all_its_scores_and_options(name: str) -> None:
    kind = METRICS.find(name)
    page = hooks.with_facts(f"metrics/{name}.md", "# Title\n")
    for scale in kind.scales:
        assert f"| `{scale.name}` | " in page
    for field in dataclasses.fields(kind):
        assert f"| `{name}.{field.name}` | " in page


def test_a_method_s_page_has_all_its_figures() -> None:
    page = hooks.with_facts("methods/mst.md", "# Title\n")
    with (DOCS / "choosing.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "mst"]
    assert len(rows) > 20
    for row in rows:
        single = "–" if row["single"] == "nan" else f"{float(row['single']):.3f}"
        assert f"| {row['table']} | δ = 1e-09 | {row['epsilon']} | {single} | {float(row['pairs']):.3f} |" in page
    assert "## All figures" not in hooks.with_facts("methods/pfr.md", "# Title\n")


def test_figures_in_the_text_stand_where_the_text_says() -> None:
    checked = 0
    for path in sorted((DOCS / "methods").glob("*.md")):
        text = (
            path.read_text(encoding="utf-8")
            .partition("\n## When it wins, and when it loses\n")[2]
            .partition("\n## ")[0]
        )
        sources = [path.parent / name for name in re.findall(r"\]\(([^)#]+)\)", text)]
        sources += [source.with_suffix(".csv") for source in sources if source.name == "choosing.md"]
        said = "".join(source.read_text(encoding="utf-8") for source in sources)
        for figure in re.findall(r"\b\d+\.\d{2,}\b|\b\d{2,3},\d{3}\b", text):
            if not re.search(rf"{re.escape(figure)} (?:private )?rows|{re.escape(figure)} of 1,000,000", text):
                shortest = figure.rstrip("0") if "." in figure else figure  # a CSV writes 0.020 as 0.02
                assert shortest in said, f"{path.name}: {figure}"
                checked += 1
    assert checked > 60


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def test_tables_of_options_in_the_text_say_what_the_code_says() -> None:
    checked = 0
    for path in sorted((DOCS / "methods").glob("*.md")):
        text = path.read_text(encoding="utf-8").partition("\n## Options\n")[2].partition("\n## ")[0]
        for names, defaults in re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", text, re.MULTILINE):
            fields = {field.name: default_text(field.default) for field in dataclasses.fields(METHODS.find(path.stem))}
            said = [_number(word) for word in re.sub(r"(?<=\d),(?=\d{3})", "", defaults).split(", ")]
            assert said == [_number(fields[name]) for name in re.findall(r"`(\w+)`", names)], f"{path.stem}: {names}"
            checked += 1
    assert checked >= 15


# ---- Pictures --------------------------------------------------------------------------------------------------------


def test_pictures_are_those_that_the_script_draws() -> None:
    kept = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("pictures/*.svg")}
    assert kept == set(pictures.all_pictures())
    for place, drawn in pictures.all_pictures().items():
        assert (DOCS / place).read_text(encoding="utf-8") == drawn, place


def test_every_method_has_a_picture() -> None:
    assert set(pictures.PICTURES) == set(METHODS.built_in)


def test_the_table_of_suspicions_is_computed() -> None:
    page = (DOCS / "howto" / "epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$", page, re.MULTILINE)
    assert len(rows) == 7
    for epsilon, *shown in rows:
        assert shown == [f"{100 * pictures.believed(prior, float(epsilon)):.1f}" for prior in (0.01, 0.1, 0.5)]


def test_the_table_of_deployments_says_what_the_picture_shows() -> None:
    page = (DOCS / "howto" / "epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+\)) \| ([\d.]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert rows == [(name, f"{epsilon:g}", unit) for name, epsilon, unit in pictures.DEPLOYMENTS]


# ---- Markdown --------------------------------------------------------------------------------------------------------


def test_lists_get_the_blank_line_that_the_renderer_wants_and_code_is_left_alone() -> None:
    text = "Text:\n* one\n* two\n\n```text\na:\n* b\n```\n"
    assert hooks.outside_code(text, hooks.spaced) == "Text:\n\n* one\n* two\n\n```text\na:\n* b\n```\n"


def test_blocks_get_captions() -> None:
    assert hooks.captioned("file", "a.yaml", "yaml") == '```yaml title="a.yaml"'
    assert hooks.captioned("status", "2", "console") == '```console title="exit status 2"'


def test_docstrings_become_markdown() -> None:
    doc = "Does it.\n\nArgs:\n    one, two: what\n        they are.\n\nTitle\n-----\nText.\n\n>>> 1 + 1\n2"
    assert reference.prose(doc) == (
        "Does it.\n\n**Args**\n\n* `one`, `two`: what they are.\n\n**Title**\n\nText.\n\n```pycon\n>>> 1 + 1\n2\n```"
    )
