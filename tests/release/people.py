"""A small table of people and releases of it, shared by the tests of release, report and synthesizer."""

import datetime as dt
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from understudy.release.files import _write_manifest
from understudy.release.release import Release
from understudy.schema import (
    Boolean,
    Category,
    Cut,
    Date,
    Derived,
    Float,
    Impossible,
    Integer,
    OpenCategory,
    Schema,
    UniformBins,
    Unit,
)
from understudy.synthesizer import synthesize

SCRIPT = "<script>alert(1)</script>"
QUOTES = '"><img src=x onerror=alert(1)>'


def everything() -> Schema:
    """Every kind of column, labels that want to be markup, a rule and a derived column."""
    return Schema(
        columns=(
            Category(name="sex", labels=("F", "M"), missing=False),
            Category(name="mood", labels=(SCRIPT, "| *calm* |", "[x](http://evil.example)"), other="else"),
            OpenCategory(name="job", most_labels=10),
            Boolean(name="member"),
            Integer(name="age", lower=0, upper=99, bins=UniformBins(5), special=(999,)),
            Float(name="height", lower=0.5, upper=2.5, bins=UniformBins(4), decimals=2, missing=False),
            Date(name="born", lower=dt.date(1990, 1, 1), upper=dt.date(1999, 12, 31), bins=UniformBins(3)),
            Derived(name="tall", formula=Cut("height", (0.5, 1.5, 2.5), ("no", "yes"))),
        ),
        unit=Unit(),
        rules=(Impossible(when={"sex": ("M",), "member": ("true",)}, note="a club for women"),),
        title=QUOTES,
    )


def simple() -> Schema:
    """Three columns, no missing values, no rule."""
    return Schema(
        columns=(
            Category(name="sex", labels=("F", "M"), missing=False),
            Integer(name="age", lower=0, upper=49, bins=UniformBins(5), missing=False),
            Boolean(name="voted", missing=False),
        ),
        unit=Unit(),
        title="voters",
    )


def people(rows: int = 600, seed: int = 1) -> pd.DataFrame:
    """Rows that fit `everything` and `simple`, with missing and strange values, and a column nobody declared."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], rows),
            "mood": rng.choice([SCRIPT, "| *calm* |", "[x](http://evil.example)", "odd"], rows),
            "job": rng.choice(["nurse", "clerk", "<b>baker</b>"], rows),
            "member": rng.random(rows) < 0.5,
            "age": rng.integers(0, 50, rows),
            "height": rng.uniform(0.6, 2.4, rows),
            "born": [dt.date(1990, 1, 1) + dt.timedelta(days=int(days)) for days in rng.integers(0, 3000, rows)],
            "voted": rng.random(rows) < 0.4,
        }
    )
    frame.loc[rng.random(rows) < 0.1, "mood"] = None
    frame["unasked"] = "never read"
    return frame


def release_of_everything() -> Release:
    return synthesize(people(), everything(), method="independent", epsilon=20.0, delta=1e-6, seed=5)


def release_of_simple(**options: object) -> Release:
    settings: dict[str, object] = {"method": "laplace", "epsilon": 2.0, "seed": 5}
    # Noise of scale 10 on the number of rows. With the usual share it is 50, and none are left once in 300,000 runs.
    settings |= {"options": {"total_share": 0.05}} | options
    return synthesize(people(), simple(), **settings)  # type: ignore[arg-type]


def copied(folder: Path, target: Path) -> Path:
    """A copy of a release folder to tamper with."""
    shutil.copytree(folder, target, symlinks=True)
    return target


def relisted(folder: Path) -> Path:
    """The folder with a manifest that fits whatever was done to it, as a careful forger would leave it."""
    (folder / "manifest.json").unlink(missing_ok=True)
    _write_manifest(folder)
    return folder


def edited_json(folder: Path, name: str, **changes: object) -> Path:
    """The folder with some top-level entries of a JSON file replaced, and a fitting manifest."""
    document = json.loads((folder / name).read_text(encoding="utf-8"))
    document.update(changes)
    (folder / name).write_text(json.dumps(document), encoding="utf-8")
    return relisted(folder)
