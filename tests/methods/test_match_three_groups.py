"""The challenge's groups: with the single columns, 39 groups of its 98 columns."""

from understudy.domain import Domain
from understudy.methods.fieldgroups import parse_groups
from understudy.methods.match_three import MATCH_THREE

COLUMNS_OF_THE_CHALLENGE = 98


def test_26_groups_and_13_single_columns_make_39() -> None:
    names = [name for group in MATCH_THREE.split(", ") for name in group.split("+")]
    groups = parse_groups(MATCH_THREE, Domain.of(dict.fromkeys(names, 2)), "groups")
    single = COLUMNS_OF_THE_CHALLENGE - sum(len(group.columns) for group in groups)
    assert (len(groups), single, len(groups) + single) == (26, 13, 39)
