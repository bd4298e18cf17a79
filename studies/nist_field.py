"""The field of the 2018 NIST challenge under the same light: its scores, and the propensity measures of a later review.

Entries of the challenge's teams as they were, their mended forms, and four other methods beside them, on fire calls
(Matches 1 and 2) and on a survey of persons (in place of Match 3's census). A row for every rank that Bowen and Snoke
(2021) print in their Tables 4 to 6, and for what they say in words.

    python -m studies.nist_field --data FOLDER            # the full form needs the real tables
    python -m studies.nist_field --smoke                  # the packaged demonstration table

"""

from pathlib import Path

from studies.editions import finished
from studies.field import entrants, entry, scoring, tables
from studies.field.entrants import present
from studies.field.entry import Entry, run, setting
from studies.field.judge import judge, say_mended
from studies.field.reading import reading
from studies.field.results import Results
from studies.field.show import describe, show
from studies.field.tables import READERS
from studies.runs import carry_out, kept_file, spent_on
from studies.writing import Form, StudyPage, run_as_script

__all__ = ["study"]

REPEATS = 20


def study(form: Form) -> Path:
    """Runs all entries, writes the page and its figures."""
    data = None if form.smoke else form.data
    if not form.smoke and data is None:
        raise SystemExit("The full form needs the real tables: --data FOLDER.")
    names = ("voters",) if data is None else tuple(READERS)
    page = StudyPage("nist_field", "The field of the 2018 NIST challenge", form)
    repeats = form.repeats or form.pick(1, REPEATS)
    benches = {name: setting(name, data)[0] for name in names}
    entries = [
        Entry(name, data, entrant, epsilon, repeat)
        for repeat in range(1, repeats + 1)
        for name, bench in benches.items()
        for epsilon in bench.epsilons
        for entrant in present()
    ]
    kept = kept_file(form.keep, page.name, (entry.__file__, entrants.__file__, scoring.__file__, tables.__file__))
    records = carry_out(entries, run, kept, form.jobs)
    page.spent = spent_on(records)
    results = Results.of(records)
    describe(page, benches, repeats, results)
    for name, bench in benches.items():
        show(page, bench, setting(name, data)[1], results, setting(name, data)[2].yardstick(0))
    say_mended(page, results, smoke=form.smoke)
    judge(page, results, smoke=form.smoke)
    page.say(reading(page, results, names[0], names[-1]))
    return finished(page)


if __name__ == "__main__":
    run_as_script(study, __doc__ or "")
