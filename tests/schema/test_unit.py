from understudy.schema import Unit


def test_one_row_is_the_plain_unit() -> None:
    assert Unit() == Unit(None, 1, "")
    assert Unit().sensitivity == 1


def test_sensitivity_is_the_bound_on_rows() -> None:
    assert Unit("person_id", 7).sensitivity == 7
