"""The file contract of the peers: jobs are read as written, and what breaks the contract is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import contract
from benchmarks.peers.measure import mean_total_variation, total_variation

DOMAIN = {"a": 2, "b": 3, "c": 2}


def job_folder(folder: Path, **settings: object) -> Path:
    columns = {name: np.arange(6) % size for name, size in DOMAIN.items()}
    folder.mkdir(exist_ok=True)
    contract.write_columns(folder / contract.TABLE, columns)
    (folder / contract.DOMAIN).write_text(json.dumps(DOMAIN), encoding="utf-8")
    given = {"method": "mst", "epsilon": 1.0} | settings
    (folder / contract.SETTINGS).write_text(json.dumps(given), encoding="utf-8")
    return folder


def test_job_is_read_with_its_defaults(tmp_path: Path) -> None:
    job = contract.read_job(job_folder(tmp_path, delta=1e-9, seed=5), 2)
    assert (job.method, job.epsilon, job.delta, job.rows, job.seed) == ("mst", 1.0, 1e-9, 6, 7)
    assert job.columns["b"].tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("pairs", [("a", "b"), ("a", "c"), ("b", "c")]),
        ("triples", [("a", "b", "c")]),
        ([["c", "a"]], [("c", "a")]),
    ],
)
def test_workload_is_written_out(tmp_path: Path, workload: object, expected: list[tuple[str, ...]]) -> None:
    assert contract.read_job(job_folder(tmp_path, workload=workload), 0).cliques() == expected


def test_unknown_setting_and_workload_are_refused(tmp_path: Path) -> None:
    with pytest.raises(contract.ContractError, match="unknown noise_seed"):
        contract.read_job(job_folder(tmp_path, noise_seed=1), 0)
    with pytest.raises(contract.ContractError, match="quadruples"):
        contract.read_job(job_folder(tmp_path, workload="quadruples"), 0).cliques()


def test_codes_outside_the_domain_are_refused(tmp_path: Path) -> None:
    folder = job_folder(tmp_path)
    contract.write_columns(folder / contract.TABLE, {name: np.full(4, 2) for name in DOMAIN})
    with pytest.raises(contract.ContractError, match='column "a"'):
        contract.read_job(folder, 0)


def test_total_variation_by_hand() -> None:
    domain = {"a": 2, "b": 2}
    real = {"a": np.array([0, 0, 1, 1]), "b": np.array([0, 1, 0, 1])}
    made = {"a": np.array([0, 0, 0, 1]), "b": np.array([0, 0, 0, 1])}
    assert total_variation(real, made, ("a",), domain) == pytest.approx(0.25)
    assert total_variation(real, made, ("a", "b"), domain) == pytest.approx(0.5)
    assert mean_total_variation(real, real, domain, 2) == 0.0


def test_total_variation_of_a_table_too_large_to_hold() -> None:
    rng = np.random.default_rng(1)
    wide, narrow = {"a": 5_000, "b": 5_000}, {"a": 50, "b": 50}
    real, made = ({name: rng.integers(0, 50, 400) for name in narrow} for _ in range(2))
    assert total_variation(real, made, ("a", "b"), wide) == pytest.approx(
        total_variation(real, made, ("a", "b"), narrow)
    )
