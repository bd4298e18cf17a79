"""Structures: from pair scores to a network whose tables stay useful."""

from understudy.domain import Clique, Domain
from understudy.methods.network_structure import Search, from_pairs, pairs_of
from understudy.privacy.dependence import Family

DOMAIN = Domain.of({"a": 2, "b": 2, "c": 2, "one": 1, "d": 4})


def scores(**given: float) -> dict[Clique, float]:
    """Pair scores, 0 unless given (`ab` is the pair of a and b)."""
    return {
        DOMAIN.clique(pair.columns): given.get("".join(DOMAIN.clique(pair.columns)), 0.0) for pair in pairs_of(DOMAIN)
    }


def test_every_pair_of_live_columns_is_scored_once() -> None:
    assert len(pairs_of(DOMAIN)) == 6
    assert Family("b", ("a",)) in pairs_of(DOMAIN)


def test_the_first_table_starts_at_the_best_pair_per_cell_and_grows_by_score() -> None:
    """b and c have the best score per cell; a adds more than d and fits into 8 cells, d no longer does."""
    found = from_pairs(Search(DOMAIN, [], 8.0), scores(bc=10.0, ab=4.0, cd=9.0, ad=1.0))
    assert [family.child for family in found.families] == ["b", "c", "a", "d"]
    assert found.families[2] == Family("a", ("b", "c"))
    assert found.families[3] == Family("d", ("c",))
    assert found.derived == 2
    assert [family.child for family in found.measured] == ["a", "d"]


def test_parents_without_a_score_above_nothing_are_not_taken() -> None:
    found = from_pairs(Search(DOMAIN, [], 4.0), scores(ab=5.0, bd=-2.0, ad=-1.0, cd=-3.0, ac=-1.0, bc=-1.0))
    assert {family.child: family.parents for family in found.families}["c"] == ()


def test_one_live_column_is_its_own_network() -> None:
    domain = Domain.of({"one": 1, "a": 3})
    assert from_pairs(Search(domain, [], 100.0), {}).families == (Family("a"),)
