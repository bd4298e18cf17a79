"""Screenshots of report, card and study of three tables: `python -m tests.report.pictures [TABLE …]` (make pictures).

The demo's simulated voters, Adult and stroke_ist (110 columns), the latter two where the shared data lie beside the
checkout. Of a wide table, report and study have quick metrics alone, and the study two methods and two repeats. Pages
and pictures go into the folder `pictures`, which git ignores; reports there are confidential.
"""

import argparse
import json
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import understudy as us
from tests.real.shared_tables import FOLDER, schema_of
from tests.report.browser import CHROMIUM, Browser
from understudy.demo import schema_text, voter_table
from understudy.schema import Category, Column, Integer, Schema, UniformBins, Unit
from understudy.schema.document import schema_from_text

WIDTHS = (390, 820, 1280)
PLACE = Path("pictures")
NAMES = {"report.html": "report", "card.html": "card", "index.html": "study"}
FORMULAS = {
    "demo": "voted ~ age + female + family_income + college_degree + residence",
    "adult": "`income>50K`[1] ~ age + sex + race + `hours-per-week` + `education-num`",
    "stroke_ist": "",
}
STUDY_ROWS = 4000
QUICK = ("marginals", "crosstab_l1", "specks", "correlations", "prediction", "rules")
"""Of wide tables: `pmse` alone takes minutes."""
NUMBERS = {"age": 85, "hours-per-week": 99, "fnlwgt": 100, "capital-gain": 100, "capital-loss": 100}


def adult() -> tuple[pa.Table, Schema]:
    """The table of codes; ages and hours are numbers."""
    sizes = json.loads((FOLDER / "adult" / "adult-domain.json").read_text(encoding="utf-8"))
    columns: list[Column] = [
        Integer(name=name, lower=0, upper=size - 1, bins=UniformBins(20), missing=False)
        if name in NUMBERS
        else Category(name=name, labels=tuple(str(code) for code in range(size)), missing=False)
        for name, size in sizes.items()
    ]
    frame = pd.read_csv(FOLDER / "adult" / "adult.csv")
    texts = {name: frame[name] if name in NUMBERS else frame[name].astype(str) for name in sizes}
    return pa.table({name: pa.array(values) for name, values in texts.items()}), Schema(
        tuple(columns), Unit(), title="Adult (census income 1994), as codes"
    )


def table_of(name: str) -> tuple[pa.Table, Schema]:
    """A table and its schema."""
    if name == "demo":
        return voter_table(), schema_from_text(schema_text(), "voters.yaml")
    if name == "adult":
        return adult()
    return pq.read_table(FOLDER / name / "data.parquet"), schema_of(name)


def pages_of(name: str, place: Path) -> list[Path]:
    """Report and card of the table, made anew."""
    table, schema = table_of(name)
    method = "mst" if len(schema.modelled) > 50 else "aim"
    release = us.synthesize(table, schema, method=method, epsilon=1.0, delta=1e-9, out=place / "release", seed=1)
    began = time.process_time()
    metrics = None if len(schema.modelled) <= 50 else QUICK
    found = us.evaluate(table, release, metrics=metrics, formula=FORMULAS[name] or None, seed=1)
    spent = time.process_time() - began
    began = time.process_time()
    found.save(place / "report.html")
    pages = [place / "report.html", place / "release" / "card.html", study_of(name, table, schema, place)]
    sizes = ", ".join(f"{page.name} {page.stat().st_size / 1e6:.2f} MB" for page in pages)
    print(
        f"{name}: evaluated in {spent:.1f} CPU s, of which pictures {found.seconds['pictures']:.1f} s; "
        f"written in {time.process_time() - began:.1f} CPU s; {sizes}"
    )
    return pages


def study_of(name: str, table: pa.Table, schema: Schema, place: Path) -> Path:
    """The page of a small study of the first rows."""
    wide = len(schema.modelled) > 50
    us.compare(
        table.slice(0, STUDY_ROWS),
        schema,
        methods=("independent", "mst") if wide else ("independent", "laplace", "mst"),
        epsilons=[0.3, 3.0],
        delta=1e-9,
        repeats=2 if wide else 3,
        metrics=["crosstab_l1", "specks"] if wide else ["marginals", "specks", "correlations"],
        jobs=2,
        out=place / "study",
    )
    return place / "study" / "index.html"


def main() -> None:
    """Makes the pages and a screenshot of each at every width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=[name for name in FORMULAS if name == "demo" or FOLDER.is_dir()])
    if CHROMIUM is None:
        raise SystemExit("make pictures: needs chromium (Debian package: chromium).")
    PLACE.mkdir(exist_ok=True)
    with Browser() as browser:
        browser.hide_scrollbars()
        for name in parser.parse_args().tables:
            place = PLACE / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
            place.mkdir()
            for page in pages_of(name, place):
                for width in WIDTHS:
                    browser.open(page, width)
                    browser.picture(place / f"{NAMES[page.name]}-{width}.png")
            print(f"Looked at in {place}")


if __name__ == "__main__":
    main()
