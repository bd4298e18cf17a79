"""Random decision trees for private labels (Duke 2018): intervals of leaf shares, panels of labelled records.

Figures 1 and 2 are computed. Figures 3 to 14 compare labelled with authentic records: slopes, correlations, joint
shares and logistic coefficients, on workers of the Current Population Survey whose sex and race play the private
columns (simulated voters without a data folder).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from studies.duke import benches, panels
from studies.duke.benches import Bench, few_voters, workers
from studies.duke.intervals import of_all, show_intervals
from studies.duke.judging import NEW, VISIBLE, Settings, judge
from studies.duke.leaves import leaf_rows
from studies.duke.panels import BASE, SETTINGS, Labelled, as_record, labelled, read_record
from studies.duke.pictures import BARS, comparison_svg
from studies.duke.reading import reading
from studies.editions import finished
from studies.runs import Record, carry_out, kept_file, spent_on
from studies.verdicts import RULE, count_of, verdict
from studies.writing import Form, StudyPage, estimate, run_as_script, table
from understudy.charts import Points

__all__ = ["Job", "jobs", "study", "work", "write_page"]

Found = Mapping[str, Sequence[Labelled]]
SHOWN = ("slopes industry", "slopes occupation", "slope agreement", "correlation agreement",
         "joint shares with agency", "joint shares, all columns", "coefficients agency", "coefficients occupation",
         "coefficients both")  # fmt: skip
REPEATS = 24
COMPARED = (
    ("3-4", "Figures 3 and 4: collapsing", "occupation 10, not collapsed", "occupation 10"),
    ("5", "Figure 5: five and ten trees", BASE, "10 trees"),
    ("6", "Figure 6: weight of Agency, collapsed", BASE, "agency 60"),
    ("7", "Figure 7: weight of Agency, not collapsed", "not collapsed", "agency 60, not collapsed"),
    ("8", "Figure 8: λ = 0.1 and 0.4", BASE, "λ = 0.4"),
    ("9", "Figure 9: n_B = 1,000 and 2,000", BASE, "n_B = 2,000"),
)
REGRESSIONS = (
    (10, BASE, "agency", "Agency alone, λ = 0.1"),
    (11, "λ = 0.4", "agency", "Agency alone, λ = 0.4"),
    (12, BASE, "both", "Agency and Occupation"),
    (13, "occupation 60", "both", "Agency and Occupation, weight 60 for Occupation"),
    (14, "occupation 60", "occupation", "Occupation alone, weight 60 for it"),
)
PAIR = "private pair off by"
SMALL_LEAVES = "leaves of 200"


@dataclass(frozen=True)
class Job:
    """One release to make: which setting, which repeat, and where the real tables are."""

    setting: str
    repeat: int
    form: Form

    @property
    def key(self) -> str:
        return f"{self.setting}/{self.repeat}"


@cache
def _bench(form: Form) -> Bench:
    if form.data is not None and not form.smoke:
        return workers(form.data)
    return few_voters(form.pick(1500, 20_000))


def work(job: Job) -> Record:
    """The release of a job, compared; panels show the first repeat."""
    return as_record(labelled(_bench(job.form), SETTINGS[job.setting], job.repeat), points=job.repeat == 0)


def jobs(form: Form) -> list[Job]:
    """Every release of the study."""
    return [Job(name, repeat, form) for repeat in range(form.repeats or form.pick(2, REPEATS)) for name in SETTINGS]


def study(form: Form) -> Path:
    """Computes the intervals, labels records under every setting, and writes the page."""
    page = StudyPage("rdt_panels", "Random decision trees: private labels for public records", form)
    todo = jobs(form)
    kept = kept_file(form.keep, page.name, (benches.__file__, panels.__file__))
    return write_page(page, todo, carry_out(todo, work, kept, form.jobs))


def write_page(page: StudyPage, todo: Sequence[Job], records: Sequence[Record]) -> Path:
    """The page from all results."""
    page.spent = spent_on(records)
    found: dict[str, list[Labelled]] = {name: [] for name in SETTINGS}
    for job, record in zip(todo, records, strict=True):
        found[job.setting].append(read_record(record))
    bench = _bench(page.form)
    show_intervals(page)
    _describe(page, bench, found)
    _show(page, bench, found)
    judge(page, bench, found)
    leaf_rows(page, bench)
    _other_rows(page, bench, found)
    page.say(reading(page, bench, found))
    return finished(page)


def _describe(page: StudyPage, bench: Bench, found: Found) -> None:
    repeats = len(found[BASE])
    page.say(
        f"## Figures 3 to 14: labelled records ({bench.title})\n\n"
        f"{bench.private.num_rows:,} private records are labelled, another {bench.public.num_rows:,} public ones limit "
        f"the growth of trees. {bench.agency} plays Agency, {bench.occupation} plays Occupation; {bench.outcome} is "
        f"drawn first, {bench.second} second. The source shows one picture for each setting; here every setting is run "
        f"{repeats} times with new trees and new noise. A repeat draws its trees from the same seed under every "
        "setting, so settings are compared repeat by repeat. Collapsing: codes "
        f"with fewer than {bench.sizes[0]} ({bench.agency}) or {bench.sizes[1]} ({bench.occupation}) public records "
        "are pooled "
        "and amounts are coarse; numbers are taken over the frequent levels in either case. Base: collapsed, five "
        f"trees, equal weights, λ = 0.1, n_B = 1,000.\n\n{RULE} The margin, and what “no visible difference” means: "
        f"{VISIBLE:.0%} of the error of the setting compared with. Errors are mean or root mean square differences; a "
        "correlation r of joint shares counts as an error of √(1 − r²), the spread around a line as a share of all "
        "spread."
    )


def _mean(found: Found, setting: str, measure: str) -> str:
    return str(estimate([one.numbers[measure] for one in found[setting]]))


def _show(page: StudyPage, bench: Bench, found: Found) -> None:
    names = [_named(bench, name) for name in SHOWN]
    body = [
        [setting, f"{found[setting][0].epsilon:g}", *(_mean(found, setting, name) for name in names)]
        for setting in SETTINGS
    ]
    page.say(
        "Slopes: mean of |synthetic − authentic| over levels. Agreement: correlation of synthetic with authentic "
        "numbers. Coefficients: root mean square difference of log odds. ε is what the release states for adding or "
        "removing a record; for a change of labels it is twice as much."
    )
    page.say(table(("setting", "ε", *names), body))
    page.say(
        "Pictures show one release of a setting, the first. The source's figures 3 to 9 have four panels: (a) joint "
        "shares of the private columns and Agency, (b) of all columns, (c) slopes, (d) correlations. Here (a) shows "
        f"the {BARS} largest joint levels; in (b) every joint level is a point, and levels with the same two counts "
        "are the same point. Its weights, year and collapsing stand in tables below the source's figures, "
        "which we do not have: settings here follow its text."
    )
    for stem, title, first, second in COMPARED:
        file = f"{page.name}-figure-{stem}.svg"
        shown = comparison_svg(title, [(name, found[name][0]) for name in (first, second)])
        (page.form.out / file).write_text(shown, encoding="utf-8")
        page.say(f"![{title}]({file})\n\n*{title} (“{first}” above, “{second}” below)*")
    for number, setting, kind, title in REGRESSIONS:
        caption = f"Figure {number}: coefficients, {title} (one repeat of “{setting}”)"
        points = found[setting][0].points[f"coefficients {kind}"]
        page.figure(f"figure-{number}", Points(caption, "authentic", "synthetic", points))


def _named(bench: Bench, measure: str) -> str:
    return measure.replace("industry", bench.agency).replace("slopes occupation", f"slopes {bench.occupation}")


def _other_rows(page: StudyPage, bench: Bench, found: Found) -> None:
    spent = {name: found[name][0].epsilon for name in (BASE, "10 trees", "λ = 0.4", "agency 60", "n_B = 2,000")}
    page.find(
        "§3: leaf queries go to disjoint records, one set for each node path: total accumulated ε “should be ε”",
        f"for one tree: five trees for each of two columns at λ = 0.1 state ε = {spent[BASE]:g}, that is λ for a tree. "
        "The sentence gives no total of an ensemble, nor does another; a change of labels costs twice as much",
        of_all([_of_a_tree(name, one) for name, one in spent.items()]) + " for one tree",
    )
    page.find(
        "Figure 5: more trees take additional ε",
        f"five trees {spent[BASE]:g}, ten trees {spent['10 trees']:g} at the same λ",
        "confirmed" if spent["10 trees"] > spent[BASE] else "refuted",
    )
    answers = Settings(found, bench).better(BASE, "synthetic route", (PAIR,))
    page.find(
        "§2: the second private column is learned from records that carry a synthetic first one",
        f"joint table of both private columns off by {_mean(found, 'synthetic route', PAIR)} in that way, by "
        f"{_mean(found, BASE, PAIR)} with true first labels, at the same price (ours better: {count_of(answers)})",
        "a design choice; ours is better" if verdict(answers) == "confirmed" else _no_worse(found, bench),
    )
    slopes = Settings(found, bench).slopes
    answers = Settings(found, bench).same(SMALL_LEAVES, BASE, slopes)
    page.find(
        "§3, outline: a leaf has a table if the other table has at least leafFreqMin records in it; nothing is said of "
        "its value, nor of other leaves",
        f"leaves with fewer than {SETTINGS[SMALL_LEAVES].leaf_minimum} public records take the noisy counts of the "
        "branch around them, at the same ε. Errors of slopes the same as without: "
        f"{Settings(found, bench).text(answers, SMALL_LEAVES, BASE, slopes)}; joint table of both private columns off "
        f"by {_mean(found, SMALL_LEAVES, PAIR)} instead of {_mean(found, BASE, PAIR)}; new combinations "
        f"{_mean(found, SMALL_LEAVES, NEW)} instead of {_mean(found, BASE, NEW)}",
        "a design choice; it leaks nothing, as public records decide, and saves nothing, as leaves are disjoint",
    )
    page.find("§2: 80 % of public records match a single authentic one (1988–2011), more than 95 % in certain years",
              "—", "cannot be checked: neither file can be had")  # fmt: skip
    page.find("§3: basic against adjusted pay: growth limited by one, labels by the other; collapsing should mitigate "
              "it", "—", "cannot be checked: the files cannot be had")  # fmt: skip


def _of_a_tree(name: str, epsilon: float) -> bool:
    """Whether ε is λ for each tree of both private columns."""
    setting = SETTINGS[name]
    return math.isclose(epsilon, 2 * setting.trees * setting.rate, rel_tol=1e-9)


def _no_worse(found: Found, bench: Bench) -> str:
    same = verdict(Settings(found, bench).same(BASE, "synthetic route", (PAIR,)))
    return "a design choice; no visible difference at this noise" if same == "confirmed" else "not decided"


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
