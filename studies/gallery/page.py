"""The page of an exhibit: decisions, schema, plan of the release, and the analysis with its pictures."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from studies.gallery.exhibits import EXHIBITS, Exhibit
from studies.gallery.running import Coefficient, Finding, Group
from studies.writing import table
from understudy.charts import Chart, Forest, IntervalRow
from understudy.report import render_picture

COMMAND = "make gallery DATA=FOLDER"
MADE_BY = (
    f"Every number and picture on this page comes from `{COMMAND}` (`python -m studies.gallery`). Noise has no seed, "
    f"so another run gives slightly different numbers."
)

COLOURS = "Grey marks the raw file, blue the release."


def write(found: Finding, folder: Path) -> Path:
    """Writes the page and its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    name = found.exhibit.name
    parts = [
        f"# {found.exhibit.title}",
        MADE_BY,
        *_table_and_decisions(found),
        *_release(found),
        *_distributions(found, folder),
        *_rates(found, folder),
        *_model(found, folder),
        "## Where the stand-in fails",
        _failures(found),
        *_harder(found, folder),
        *(f"* {words}" for words in found.exhibit.limits),
    ]
    target = folder / f"{name}.md"
    target.write_text(_joined(parts), encoding="utf-8")
    return target


def _joined(parts: Sequence[str]) -> str:
    """Paragraphs apart, items of a list together."""
    text = parts[0]
    for before, part in itertools.pairwise(parts):
        text += ("\n" if before.startswith("* ") and part.startswith("* ") else "\n\n") + part
    return text + "\n"


def _table_and_decisions(found: Finding) -> list[str]:
    one = found.exhibit
    return [
        "## The raw file",
        f"{one.source}. {found.rows:,} rows, {found.columns} columns; a row is a {one.rows_are}. Licence: "
        f"{one.licence}. The file is not part of this repository.",
        "## What the steward decided, and why",
        "All of this was fixed before a row was read, from documentation alone.",
        table(("decision", "reason"), [(_capital(what), why) for what, why in one.decisions]),
        "## The schema",
        f"```yaml\n{one.schema.read_text(encoding='utf-8').rstrip()}\n```",
    ]


def _capital(words: str) -> str:
    return words if words[:1] in "`εδ" else words[:1].upper() + words[1:]


def _release(found: Finding) -> list[str]:
    one = found.exhibit
    options = "".join(f' \\\n    --set "{name}={value}"' for name, value in one.options.items())
    file = Path(one.file).name
    copies = f"--copies {one.copies} --copies-mode remeasure " if one.copies > 1 else ""
    commands = (
        f"understudy schema check {one.name}.yaml {file}\n"
        f"understudy synthesize {file} --schema {one.name}.yaml --method {one.method} \\\n"
        f"    --epsilon {one.epsilon:g} --delta {one.delta:g} {copies}--out "
        f"release{options}\nunderstudy verify release\n"
        f"understudy evaluate {file} release --formula '{one.formula}' -o report.html   # confidential"
    )
    return [
        "## The release",
        f"```text\n{commands}\n```",
        f"The run took {found.seconds:.0f} s of processor time. {_rows(found)} `verify` found nothing wrong. The "
        f"statement of the release says:",
        *_stated(found.statement),
    ]


def _rows(found: Finding) -> str:
    if found.exhibit.copies == 1:
        return f"The release has {found.total:,} rows: a noisy total."
    return f"Each copy has {found.total:,} rows, which is the noisy total of the first copy."


def _stated(statement: str) -> list[str]:
    """The promise and the charges, from the statement in the folder."""
    sections = statement.split("\n## ")
    promise = sections[0].split("\n\n")[1:3]
    charges = next(one for one in sections if one.startswith("Charges")).split("\n\n")[1]
    return [*(f"> {paragraph}" for paragraph in promise), charges]


def _distributions(found: Finding, folder: Path) -> list[str]:
    scores = [
        (meaning, _number(score.value), _number(score.yardstick), _number(score.baseline))
        for meaning, score in found.scores
    ]
    return [
        "## Distributions",
        "The report shows the steward how near the rows are; it is confidential unless the table is public, as here. "
        "The yardstick is the same score for two random halves of the real table. The charts are the report's own, "
        "of the four columns that differ most.",
        table(("score of `marginals`", "stand-in", "yardstick", "knowing nothing"), scores),
        *(_picture(found.exhibit, f"column-{place + 1}", chart, folder) for place, chart in enumerate(found.charts)),
    ]


def _rates(found: Finding, folder: Path) -> list[str]:
    one = found.exhibit
    rows = [(group.label, f"{group.rows:,}", _percent(group.true), *_said(group)) for group in found.groups]
    charted = tuple(
        IntervalRow(group.label, (group.true,) * 3, (group.said.estimate, group.said.table_low, group.said.table_high))
        for group in found.groups
    )
    label = ",".join(f"{name}={value}" for name, value in one.rate.label.items())
    covered = sum(group.covered for group in found.groups)
    return [
        f"## {one.rate.title}",
        f'The analyst has only the folder: `understudy pool release --rate "{label}" --by "{one.rate.by}"`. The '
        f"interval "
        "is for the private table and contains the privacy noise. The column *raw file* is what nobody outside would "
        "see.",
        table(("group", "rows", "raw file", "release", "95 % interval"), rows),
        _picture(one, "rates", Forest(f"{one.rate.title}: raw file and release", charted), folder),
        f"{COLOURS} {covered} of {len(found.groups)} intervals contain the share of the raw file.",
    ]


def _said(group: Group) -> tuple[str, str]:
    said = group.said
    return _percent(said.estimate), f"{_percent(said.table_low)} to {_percent(said.table_high)}"


def _model(found: Finding, folder: Path) -> list[str]:
    one, all_of_them = found.exhibit, found.coefficients
    rows = [
        (
            each.name,
            _estimate(each.real),
            _estimate(each.pooled),
            _estimate(each.naive),
            "yes" if each.covered else "no",
        )
        for each in all_of_them
    ]
    chart = Forest(
        f"{_capital(one.model)}", tuple(IntervalRow(each.name, each.real, each.pooled) for each in all_of_them)
    )
    known = [each for each in all_of_them if each.pooled is not None]
    clear = [each for each in known if each.clear]
    same = sum(each.same_sign for each in clear)
    if found.refused:
        asked = f'``understudy pool release --formula "{one.formula}"``'
        return [f"## A {one.model}", f"In this run {asked} is refused: “{found.refused}”"]
    how, naive, intervals = _how_modelled(one)
    return [
        f"## A {one.model}",
        how,
        table(("coefficient", "raw file", "release", naive, "raw estimate inside"), rows),
        _picture(one, "model", chart, folder),
        f"{COLOURS} {intervals} contain {sum(each.covered for each in known)} of {len(known)} coefficients of the "
        f"raw file, those of {naive} {sum(each.naively_covered for each in known)}. {len(clear)} of these coefficients "
        f"differ clearly from zero in the raw file; {same} of them have the same sign in the release.",
        *found.notes,
    ]


def _how_modelled(one: Exhibit) -> tuple[str, str, str]:
    """Where the release's intervals come from, what they are held beside, and their name."""
    if one.copies == 1:
        how = (
            f'``understudy pool release --formula "{one.formula}"`` computes the model from the noisy tables and not '
            f"from the rows. The column *synthetic rows* fits it to the rows as if they were the real table, which is "
            f"what an analyst must not do."
        )
        return how, "synthetic rows", "The intervals from noisy tables"
    how = (
        f'``understudy pool release --from-copies --formula "{one.formula}"`` fits the model to each copy and pools '
        f"the fits. The column *one copy* reads a single copy as if it were the real table, which is what an analyst "
        f"must not do."
    )
    return how, "one copy", "The pooled intervals"


def _harder(found: Finding, folder: Path) -> list[str]:
    """A model whose result shows a limit, where the exhibit has one."""
    one, some = found.exhibit, found.harder
    if found.harder_refused:
        return [f"`pool` refuses the model `` {one.harder} ``: “{found.harder_refused}” {one.harder_why}"]
    if not some:
        return []
    chart = Forest(
        "A model that asks too much of the stand-in", tuple(IntervalRow(x.name, x.real, x.pooled) for x in some)
    )
    known = [each for each in some if each.pooled is not None]
    count = sum(each.covered for each in known)
    said = f"For the model `` {one.harder} ``, {count} of {len(known)} intervals contain the raw estimate."
    return [f"{said} {one.harder_why}", _picture(one, "harder", chart, folder)]


def _failures(found: Finding) -> str:
    """What went wrong in this run, in words, from the numbers."""
    known = [each for each in found.coefficients if each.pooled is not None]
    missed = [each for each in known if not each.covered]
    turned = [each for each in known if each.clear and not each.same_sign]
    absent = [each for each in found.coefficients if each.pooled is None]
    vague = [each for each in found.coefficients if _width(each) > 5]
    said = []
    if missed:
        said.append(f"The interval misses the raw estimate of {_named(missed)}.")
    if turned:
        said.append(f"The sign of {_named(turned)} is wrong although it is clear in the raw file.")
    if absent:
        said.append(f"The release gives no estimate of {_named(absent)}.")
    if vague:
        said.append(f"The interval of {_named(vague)} is more than five times as wide as in the raw file.")
    wrong = [group.label for group in found.groups if not group.covered]
    if wrong:
        said.append(f"The share of {', '.join(wrong)} lies outside its interval.")
    return " ".join(said) or "In this run every interval contained its truth. That is luck as well as method."


def _width(one: Coefficient) -> float:
    if one.pooled is None:
        return 0.0
    return (one.pooled[2] - one.pooled[1]) / max(one.real[2] - one.real[1], 1e-300)


def _named(some: Sequence[Coefficient]) -> str:
    names = [f"`{each.name}`" for each in some]
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _picture(exhibit: Exhibit, stem: str, chart: Chart, folder: Path) -> str:
    file = f"{exhibit.name}-{stem}.svg"
    (folder / file).write_text(render_picture(chart), encoding="utf-8")
    return f"![{chart.caption}]({file})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _estimate(ends: tuple[float, float, float] | None) -> str:
    if ends is None:
        return "not estimable"
    value, low, high = (f"{end:,.0f}" if abs(end) >= 1000 else f"{end:.3g}" for end in ends)
    return f"{value} ({low} to {high})"


def write_overview(found: Sequence[Finding], folder: Path) -> Path:
    """The first page of the gallery: all exhibits in one table."""
    rows = []
    for one in found:
        known = [each for each in one.coefficients if each.pooled is not None]
        inside = sum(group.covered for group in one.groups)
        rows.append(
            (
                f"[{one.exhibit.title}]({one.exhibit.name}.md)",
                f"{one.rows:,} × {one.columns}",
                f"{one.exhibit.epsilon:g}",
                f"`{one.exhibit.method}`",
                _number(one.scores[0][1].value),
                f"{inside} of {len(one.groups)}",
                f"{sum(each.covered for each in known)} of {len(known)}" if known else "refused",
            )
        )
    assert len(found) == len(EXHIBITS)
    header = ("table", "raw file", "ε", "method", "distance of pairs", "shares inside", "coefficients inside")
    parts = [
        "# Gallery: five real tables",
        "Five public tables, each taken from its raw file to a release: which decisions a steward took and why, the "
        "schema, the release, and an analysis on the stand-in beside the same analysis on the raw file. The raw "
        "files are public, so the comparison may be shown; with a private table it would be confidential.",
        MADE_BY,
        table(header, rows),
        "*Distance of pairs* is the mean total variation distance over pairs of columns (`marginals`). *Inside* "
        "counts the 95 % intervals that the release gives and that contain the value of the raw file. Intervals for "
        "shares contain the privacy noise by construction, but not what a limit on the rows of a person leaves out. "
        "Intervals for coefficients come from noisy tables where the release has one copy. With several copies they "
        "contain the noise that differs between copies, but not what the method never measured. Coefficients of one "
        "column share their reference level, so that they miss together. Each page says where and why.",
        "Two tables were released by the default method. The other three name the tables that their study is about: "
        "a question that must be answered, such as income by sex and age, should not depend on what a method picks "
        "to measure.",
        "The folder must hold the files that `studies/gallery/exhibits.py` names. Their makers publish them under the "
        "licences that the pages state.",
    ]
    target = folder / "README.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target
