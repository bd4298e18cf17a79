"""Settings of PrivBayes: shares of the cost, how tables divide what is left, and the levels parents are offered at."""

import numpy as np
import pyarrow as pa
import pytest

from understudy import synthesize
from understudy.methods.privbayes import PrivBayesSettings
from understudy.models.bayes_net import BayesianNetwork
from understudy.privacy.cost import Cost
from understudy.schema import Category, Schema, Unit


def test_shares_add_up_to_no_more_than_the_cost() -> None:
    settings = PrivBayesSettings(0.3, 0.0, 0.01, 4.0, None)
    costs = settings.costs(Cost(epsilon=10**12), 15)
    assert costs.opening.epsilon == 10**10
    assert 0 <= 3 * 10**11 - costs.structure.epsilon <= 1
    assert 14 * costs.draw.epsilon <= costs.structure.epsilon < 14 * (costs.draw.epsilon + 1)


def test_a_single_column_needs_no_structure() -> None:
    assert PrivBayesSettings(0.1, 0.4, 0.0, 4.0, None, refined=True).costs(Cost(rho=100), 1).opening == Cost(rho=100)
    assert PrivBayesSettings(0.3, 0.0, 0.01, 4.0, None).costs(Cost(epsilon=100), 1).structure == Cost()


def test_refined_tables_share_so_that_the_sum_of_errors_is_smallest() -> None:
    """Two tables of 4 and 32 cells: 1 : 4 in ρ (cells^(2/3)), 1 : √8 in ε; equally as published."""
    refined, plain = (
        PrivBayesSettings(0.1, 0.4, 0.0, 4.0, None, refined=True),
        PrivBayesSettings(0.3, 0.0, 0.01, 4.0, None),
    )
    first, second = refined.weights(Cost(rho=1), [4, 32])
    assert second / first == pytest.approx(4.0)
    first, second = refined.weights(Cost(epsilon=1), [4, 32])
    assert second / first == pytest.approx(8.0**0.5)
    assert plain.weights(Cost(rho=1), [4, 32]) == [1.0, 1.0]


@pytest.mark.parametrize(("preset", "first"), [("refined", "0"), ("published", "1")])
def test_groups_of_the_schema_are_offered_as_a_parent(preset: str, first: str) -> None:
    """Forty places in four regions; what follows depends on the region alone, so the region is the cheaper parent."""
    rng = np.random.default_rng(8)
    places = tuple(f"place {number:02}" for number in range(40))
    groups = {place: f"region {number % 4}" for number, place in enumerate(places)}
    schema = Schema(
        columns=(
            Category(name="place", labels=places, missing=False, groups=groups),
            Category(name="dish", labels=("rice", "bread", "corn", "beans"), missing=False),
        ),
        unit=Unit(),
    )
    # With a noisy number of rows (scale 100) below 371 the published rule offers no parent: 26 scales away.
    chosen = rng.integers(0, 40, 3000)
    dish = np.where(rng.random(3000) < 0.9, chosen % 4, rng.integers(0, 4, 3000))
    labels = np.array(["rice", "bread", "corn", "beans"])
    table = pa.table({"place": np.array(places)[chosen], "dish": labels[dish]})
    options = {"preset": preset, "structure_seed": first}
    release = synthesize(table, schema, method="privbayes", epsilon=1.0, options=options, seed=1)
    made = release.table
    region = np.array([int(place[-2:]) % 4 for place in made.column("place").to_pylist()])
    same = labels[region] == np.array(made.column("dish").to_pylist())
    assert isinstance(release.fits[0].model, BayesianNetwork)
    assert same.mean() > 0.7  # 0.25 if the two were drawn independently
