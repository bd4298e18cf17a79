"""Help pages, usage errors and exit status of the command as a whole; a few runs as a real process."""

import os
import re
import subprocess
import sys

import pytest

from tests.cli.terminal import run

COMMANDS = [
    *("demo", "methods", "schema", "plan", "leafsize", "synthesize", "sample", "stats", "label"),
    *("verify", "metrics", "evaluate", "compare", "pool", "ledger"),
]
DIALECT = ("--delimiter", "--encoding", "--decimal", "--no-header", "--names", "--most-bytes")
OPTIONS = {
    ("demo",): ["--out", "--private"],
    ("methods",): [],
    ("schema", "draft"): ["--out", "--like", "--codebook", "--names-are-right", *DIALECT],
    ("schema", "edit"): [],
    ("schema", "check"): ["--rows", "--epsilon", "--delta", "--ledger", "--dataset", *DIALECT],
    ("plan",): [
        *("--schema", "--method", "--epsilon", "--delta", "--set", "--rows-hint", "--public", "--memory"),
        *("--check-share", "--criteria"),
    ],
    ("synthesize",): [
        *("--schema", "--method", "--epsilon", "--delta", "--out", "--rows", "--copies", "--copies-mode"),
        *("--ledger", "--dataset", "--public", "--set", "--seed", "--memory", "--resume", "--rows-file", "--yes"),
        *("--rows-hint", "--check-share", "--criteria"),
        *DIALECT,
    ],
    ("sample",): ["--rows", "--seed", "--where", "--out", "--excel-safe", "--copy"],
    ("stats",): ["--table", "--out", "--copy"],
    ("label",): ["--seed", "--out", "--excel-safe", "--copy", "--keep", *DIALECT],
    ("leafsize",): [
        *("--width", "--share", "--rate", "--epsilon", "--trees", "--columns", "--relation", "--confidence"),
        *("--svg", "--simulate", "--seed"),
    ],
    ("verify",): ["--everything", "--criteria", "--key"],
    ("sign",): ["--key", "--new-key"],
    ("metrics",): [],
    ("audit",): [
        *("--schema", "--epsilon", "--delta", "--runs", "--set", "--copies", "--copies-mode", "--public"),
        *("--choose", "--interrupt", "--confidence", "--out"),
    ],
    ("evaluate",): ["--out", "--schema", "--metric", "--set", "--formula", "--pair", "--seed", "--verbose", *DIALECT],
    ("compare",): [
        *(
            "--schema",
            "--method",
            "--epsilon",
            "--delta",
            "--repeats",
            "--copies",
            "--copies-mode",
            "--metric",
            "--set",
            "--formula",
            "--rows",
        ),
        *(
            "--public",
            "--public-proxy",
            "--choose",
            "--ledger",
            "--dataset",
            "--minutes",
            "--memory",
            "--jobs",
            "--seed",
            "--out",
        ),
        *DIALECT,
    ],
    ("pool",): [
        *("--formula", "--family", "--share", "--rate", "--mean", "--quantile", "--where", "--by"),
        *("--from-copies", "--level"),
    ],
    ("ledger", "init"): ["--dataset", "--epsilon", "--delta", "--composition"],
    ("ledger", "show"): ["--dataset"],
    ("ledger", "verify"): ["--known"],
}
MOST_HELP_SECONDS = 1.0


def _process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "understudy", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def test_help_lists_every_command_in_the_order_of_use() -> None:
    shown = run("--help")
    assert shown.status == 0
    listed = re.findall(r"^  (\w+)  ", shown.out, flags=re.MULTILINE)
    assert [name for name in listed if name in COMMANDS] == COMMANDS
    assert (
        "Exit status: 0 done, 1 a fault in understudy, 2 usage or schema, 3 budget or ledger, 4 memory or disk"
        in shown.words
    )
    assert "With --criteria, verify also ends with 5 (not met) or 6 (undecided)." in shown.words


@pytest.mark.parametrize("command", OPTIONS, ids=" ".join)
def test_help_of_a_command_names_its_options(command: tuple[str, ...]) -> None:
    shown = run(*command, "--help")
    assert shown.status == 0
    found = set(re.findall(r"--[a-z][a-z-]*", shown.out))
    programs = set() if command == ("schema", "edit") else {"--json"}  # it talks with a person
    assert found == {*OPTIONS[command], *programs, "--quiet", "--debug", "--help"}
    assert run(*command, "-h").out == shown.out


@pytest.mark.parametrize("words", [(), ("schema",), ("ledger",)], ids=" ".join)
def test_no_command_shows_help_and_counts_as_usage(words: tuple[str, ...]) -> None:
    shown = run(*words)
    assert shown.status == 2
    assert "Usage: understudy" in shown.words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("synthesise",), "No such command 'synthesise'"),
        (("plan", "--epsilon", "1"), "Missing option '--schema'"),
        (("plan", "--schema", "s", "--epsilon", "one"), "'--epsilon'"),
        (("plan", "--schema", "s", "--epsilon", "1", "--colour"), "No such option"),
        (("verify",), "Missing argument 'RELEASE'"),
        (("verify", "a", "b"), "unexpected extra argument"),
        (("sample", "release", "--rows", "many", "-o", "x.csv"), "'--rows'"),
        (("ledger", "init", "l.db", "--dataset", "d"), "Missing option '--epsilon'"),
    ],
)
def test_usage_errors_are_one_panel_with_status_2(words: tuple[str, ...], message: str) -> None:
    shown = run(*words)
    assert (shown.status, shown.panels, shown.out) == (2, 1, "")
    assert message in shown.words
    assert "--help" in shown.words


def test_version() -> None:
    shown = run("--version")
    assert (shown.status, shown.err) == (0, "")
    assert re.fullmatch(r"understudy \d+\.\d+\.\d+\S*\n", shown.out)


def test_help_is_quick_and_loads_no_engine() -> None:
    _process("--help")  # writes the byte code
    seconds = []
    for _ in range(2):
        before = os.times()
        shown = _process("--help")
        after = os.times()
        assert (shown.returncode, shown.stderr) == (0, "")
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        seconds.append(spent)
    assert min(seconds) <= MOST_HELP_SECONDS
    heavy = ["numpy", "numba", "duckdb", "pyarrow", "scipy", "pandas", "polars", "yaml", "jinja2"]
    code = f"import sys, understudy.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_real_process_ends_with_the_status_of_the_command() -> None:
    shown = _process("verify", "no-such-folder")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.count("╭") == 1


def test_a_terminal_without_greek_letters_is_no_obstacle() -> None:
    shown = _process("methods", "laplace", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert shown.returncode == 0
    assert "laplace" in shown.stdout
