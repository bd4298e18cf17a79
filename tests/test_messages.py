from understudy.errors import below, place, shown, suggest


def test_odd_parts_stand_in_brackets() -> None:
    assert place("columns", "a.b", "upper") == "columns['a.b'].upper"
    assert place("columns", "") == "columns['']"
    assert below(place("rules", 3), "größe") == "rules[3].größe"


def test_nothing_shown_can_act_on_a_terminal_or_fill_it() -> None:
    assert "\x1b" not in shown("\x1b[31mred\u202e")
    assert "\u202e" not in shown("\u202e")
    assert len(shown(["x" * 1000])) <= 60
    assert len(place("columns", "y" * 10_000)) < 80
    assert shown(10**5000) == "a number of more than 60 digits"
    assert shown([10**5000]) == "a list"


def test_suggestions_are_short() -> None:
    assert suggest("uper", ["lower", "upper"]) == 'Did you mean "upper"? Known: lower, upper.'
    many = [f"label {i}" for i in range(500)]
    assert suggest("lable 7", many) == 'Did you mean "label 7"?'
    assert suggest("x", []) == ""
    assert suggest("x", ["\x1b[31m"]) == ""
