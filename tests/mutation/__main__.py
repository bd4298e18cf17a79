"""Mutation testing: `python -m tests.mutation GROUP …` makes small mistakes and lists those that no test notices."""

import argparse
import hashlib
import json
import math
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.house.tree import ROOT
from tests.mutation.mutants import Mutant
from tests.mutation.targets import GROUPS, Group
from tests.mutation.trials import Server, Verdict

# A trial wants to know that a test fails, not how: no smaller example is sought, no text of a failure is put together.
settings.register_profile(
    "trial", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
WORDS = (
    *("-o", "addopts=", "-s", "-m", "not slow", "--hypothesis-profile", "trial", "--assert=plain"),
    *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist"),
)
EXPLAINED = Path(__file__).parent / "survivors.md"
SEED = 20


def main() -> int:
    options = _options()
    failed = False
    for name in options.groups or list(GROUPS):
        group = GROUPS[name]
        sample = _sample(group, options)
        results = _known(options.out / f"{name}.jsonl")
        again = [mutant for mutant in sample if _is_due(results.get(mutant.name), options)]
        if again and not options.report:
            _try(group, again, options)
            results = _known(options.out / f"{name}.jsonl")
        failed |= not _reported(group, sample, results)
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], help="default: all")
    parser.add_argument("--module", action="append", help="only mutants of these modules, such as privacy.cost")
    parser.add_argument("--line", type=int, help="only mutants of this line")
    parser.add_argument("--name", action="append", help="only these mutants")
    parser.add_argument("--sample", type=int, default=0, help="how many of the group's mutants; 0 means all")
    parser.add_argument("--seed", type=int, default=SEED, help="of the sample")
    parser.add_argument("--minutes", type=float, default=math.inf, help="processor time for each group")
    parser.add_argument("--most-seconds", type=float, default=60.0, help="processor time for one mutant")
    parser.add_argument(
        "--tests", action="append", help="these tests instead of the group's: fewer can only kill fewer"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are tried at a time")
    parser.add_argument("--again", action="store_true", help="try survivors again (after tests were added)")
    parser.add_argument("--report", action="store_true", help="try nothing, say what is known")
    parser.add_argument("--out", type=Path, default=ROOT / ".mutation", help="where results are kept")
    return parser.parse_args()


def _sample(group: Group, options: argparse.Namespace) -> list[Mutant]:
    """The mutants asked for, in the order in which they are tried; a longer sample begins with the shorter one.

    The order follows from their names, so that a sample stays what it is while code around its mutants changes.
    """
    every = group.mutants()
    wanted = [
        mutant
        for mutant in every
        if (not options.module or mutant.module in options.module)
        and (options.line is None or mutant.line == options.line)
        and (not options.name or mutant.name in options.name)
    ]
    wanted.sort(key=lambda mutant: hashlib.sha256(f"{options.seed} {mutant.name}".encode()).digest())
    return wanted[: options.sample] if options.sample else wanted


def _known(path: Path) -> dict[str, Verdict]:
    """Verdicts of earlier runs, the latest for each mutant."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {found["name"]: Verdict(**found) for found in map(json.loads, lines)}


def _killers(group: Group, results: dict[str, Verdict]) -> dict[str, Counter[str]]:
    """For each function which tests have killed mutants of it, and how many."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in group.mutants():
        known = results.get(mutant.name)
        if known is not None and known.verdict == "killed":
            found[mutant.function][known.by] += 1
    return found


def _is_due(known: Verdict | None, options: argparse.Namespace) -> bool:
    return known is None or (options.again and known.verdict != "killed")


def _try(group: Group, mutants: list[Mutant], options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{group.name}.jsonl"

    def report(verdict: Verdict) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(vars(verdict), ensure_ascii=False) + "\n")

    server = Server(
        group.modules,
        mutants,
        options.out / f"{group.name}.reached.json",
        report,
        cpu_seconds=60 * options.minutes,
        most_seconds=options.most_seconds,
        jobs=options.jobs,
        before=_killers(group, _known(path)),
    )
    pytest.main([*WORDS, *(options.tests or group.test_files())], plugins=[server])


def _reported(group: Group, sample: list[Mutant], results: dict[str, Verdict]) -> bool:
    """Prints what is known; whether the bar is met and every survivor explained."""
    tried = [results[mutant.name] for mutant in sample if mutant.name in results]
    counts = Counter(found.verdict for found in tried)
    why = explanations()
    survivors = [found for found in tried if found.verdict == "survived"]
    same = sum(why.get(found.name) == "same" for found in survivors)
    judged = counts["killed"] + len(survivors) - same
    low, high = interval(counts["killed"], judged)
    print(
        f"{group.name}: {counts['killed']} of {judged} killed ({100 * counts['killed'] / max(1, judged):.1f} %; "
        f"95 % interval {100 * low:.1f}–{100 * high:.1f} % for all {len(group.mutants()):,}), "
        f"{same} that change nothing, {counts['not in place']} could not be tried, "
        f"{sum(found.seconds for found in tried) / 60:.1f} min; bar {100 * group.bar:g} %"
    )
    for found in survivors:
        print(f"  {found.mutant}{f' ({found.by})' if found.by else ''} [{why.get(found.name, 'not explained')}]")
    return judged > 0 and counts["killed"] >= group.bar * judged and all(found.name in why for found in survivors)


def explanations() -> dict[str, str]:
    """Of every explained survivor whether it is the same program ("same") or a difference that is left ("left")."""
    text = EXPLAINED.read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `([0-9a-f]{10})` \| (same|left) \|", text, re.MULTILINE))


def interval(hits: int, trials: int) -> tuple[float, float]:
    """Wilson's interval of a share at 95 %."""
    if not trials:
        return 0.0, 1.0
    share, z = hits / trials, 1.96
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return middle - half, middle + half


if __name__ == "__main__":
    sys.exit(main())
