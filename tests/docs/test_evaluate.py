"""The page about comparisons: its table says what the metrics say of themselves. (Its snippets run with the others.)"""

from pathlib import Path

from understudy.cli.options import default_text
from understudy.evaluate.metric import METRICS, describe_metric

PAGE = (Path(__file__).parents[2] / "docs" / "evaluate.md").read_text(encoding="utf-8")


def test_the_table_names_every_metric_score_and_option() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    wanted = []
    for name in METRICS.names():
        metric = describe_metric(name)
        scores = ", ".join(f"`{scale.name}`" for scale in metric.scales)
        options = ", ".join(f"`{option.name}` ({default_text(option.default)})" for option in metric.options)
        wanted.append(f"| `{name}` | {metric.question} | {scores} | {options or 'none'} |")
    assert rows == wanted
