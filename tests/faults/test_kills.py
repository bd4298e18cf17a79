"""Commands killed at random moments; `make test-faults` does as many as it is told, the suite a few."""

import os
from pathlib import Path

import pytest

from tests.faults.campaign import Before, Broken, Campaign, Site, check_after
from tests.processes import Ended

KILLS = int(os.environ.get("KILLS", "0"))
SEED = int(os.environ.get("SEED", "20"))
BATCH = 50


def test_a_few_kills_leave_nothing_or_a_whole_release(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, seed=3)
    campaign.weights = {"synthesize": 2, "alone": 1, "ledger": 1}
    for _ in range(6):
        campaign.kill_one()
    assert sum(campaign.seen.values()) == 6


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, KILLS, BATCH))
def test_many_kills_leave_nothing_or_a_whole_release(tmp_path: Path, first: int) -> None:
    """In batches, so that several processes share them; without KILLS there is none."""
    print(f"kills from {first}, seed {SEED + first}")
    campaign = Campaign(tmp_path, SEED + first)
    for _ in range(min(BATCH, KILLS - first)):
        campaign.kill_one()
    print("\n".join(f"{times:6d}  {what}" for what, times in sorted(campaign.seen.items())))


@pytest.fixture
def made(tmp_path: Path) -> tuple[Site, Before, Ended]:
    """A site whose command has ended well."""
    site = Site.of("synthesize", tmp_path / "site")
    before = Before.of(site)
    ended = site.start().ended()
    check_after(site, before, ended)
    return site, before, ended


def test_the_campaign_finds_what_it_is_for(made: tuple[Site, Before, Ended], tmp_path: Path) -> None:
    """A half release, a refund, rows read without a charge, and a message that denies a charge."""
    site, before, ended = made
    with pytest.raises(Broken, match="without a charge"):
        check_after(site, Before(site.lines(), site.charges()), ended)
    denied = Ended(2, "╭ Nothing was charged. ╮")
    with pytest.raises(Broken, match="1 charges, but"):
        check_after(site, before, denied)
    with pytest.raises(Broken, match="changed or removed"):
        check_after(site, Before([*before.lines, "a line that was there"], before.charges), ended)
    with pytest.raises(Broken, match="value of a row"):
        check_after(site, before, Ended(0, "Zaphod-7731"))
    (site.out / "data.parquet").unlink()
    with pytest.raises(Broken, match="not whole"):
        check_after(site, before, ended)
