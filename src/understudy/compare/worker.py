"""The process of one run: synthesize, score, write the outcome. `python -m understudy.compare.worker JOB OUTCOME`.

Messages of our own errors hold no private value and are kept. Any other error ends the process without an outcome,
which the study notes as a failure.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from understudy.compare.runs import SCORING, Found, Job, Outcome, end_with_parent
from understudy.errors import ResourceError, UnderstudyError
from understudy.evaluate import evaluate
from understudy.schema import Schema
from understudy.synthesizer import synthesize


def run_job(job: Job) -> Outcome:
    """The outcome of a run; errors become outcomes too. Timed is `synthesize` with drawing the rows, not scoring."""
    begun, spent = time.perf_counter(), time.process_time()
    try:
        schema = Schema.from_yaml(job.schema)
        release = synthesize(job.table, schema, **job.run)
        tables = release.tables
        seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - spent
        peak = _peak_bytes()
        sys.stdout.write(f"{SCORING}\n")
        sys.stdout.flush()
        evaluation = evaluate(job.table, tables, schema, pictures=False, **job.scoring)
    except ResourceError as error:
        return Outcome("refused", str(error), time.perf_counter() - begun, time.process_time() - spent, _peak_bytes())
    except UnderstudyError as error:
        return Outcome("failed", str(error), time.perf_counter() - begun, time.process_time() - spent, _peak_bytes())
    except MemoryError:
        return Outcome("memory", "ran out of memory.", time.perf_counter() - begun, 0.0, _peak_bytes())
    scores = tuple(
        Found(result.metric, score.name, score.value, score.yardstick, score.direction, score.best, score.why_not)
        for result in evaluation.results
        for score in result.scores
    )
    return Outcome("done", "", seconds, cpu_seconds, peak, scores)


def main(arguments: list[str]) -> int:
    """Runs the job of the first file and writes the outcome to the second."""
    end_with_parent()
    job, outcome = (Path(argument) for argument in arguments)
    tempfile.tempdir = str(job.parent)  # which the study removes, also when it had to kill this process
    run_job(Job.read(job)).write(outcome)
    return 0


def _peak_bytes() -> int:
    """Most resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
