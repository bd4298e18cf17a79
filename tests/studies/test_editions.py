"""What a page says about the edition before it: verdicts that are another kind, and statements that came or went."""

from studies.editions import changes, verdicts_of
from studies.writing import Finding, table

ROWS = [
    ("Table 4: a is 1 of 5", "1 of 5", "refuted"),
    ("b | c is larger", "open (lead 1 ± 2)", "no difference larger than 0.1"),
    ("d grows", "clearly so", "confirmed"),
]
PAGE = f"# A page\n\n## Statement by statement\n\n{table(('printed', 'ours', 'verdict'), ROWS)}\n\nThe 3 runs took …\n"


def test_verdicts_are_read_from_the_page_as_it_is_printed() -> None:
    assert verdicts_of(PAGE) == {printed: verdict for printed, _, verdict in ROWS}
    assert verdicts_of("# No statements") == {}


def test_only_another_kind_of_verdict_is_a_change() -> None:
    now = [
        Finding("Table 4: a is 1 of 5", "1 to 2", "a tie: no difference larger than 10,000"),
        Finding("b | c is larger", "open", "no difference larger than 0.3"),
        Finding("e is new", "", "confirmed"),
    ]
    said = changes(now, PAGE)
    assert "Of 2 statements in both editions 1 have another verdict; 1 are new or worded anew, 1 of the last" in said
    assert "| Table 4: a is 1 of 5 | refuted | a tie: no difference larger than 10,000 |" in said
    assert "b \\| c is larger" not in said
