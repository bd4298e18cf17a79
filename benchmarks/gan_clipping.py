"""Clipped gradients of single rows: our integer kernels, torch.func, and opacus both ways. Rows a second, one core.

    python benchmarks/gan_clipping.py                     # ours, and torch.func and opacus where they are installed
    python benchmarks/gan_clipping.py --rows 977 --hidden 32 1024

Started by its path, because opacus brings a package named benchmarks of its own.

What is timed is one step of `dpwgan` before the noise: the gradient of the critic's score for every sampled row, each
cut to the same norm, added up. Ours gives whole numbers and leaves out units beyond the exact bound (`contributions`,
then `bounded_sum`, the door's own); the others give 32-bit floats. The size is that of Adult: 14 columns, 113 groups,
977 rows (the expected number at the default rate). Sums are compared before anything is timed.
"""

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable

import numpy as np

from understudy.methods.networks import SLOPE, Critic, Encoding, NetworkSettings, contributions
from understudy.privacy.training import bounded_sum

COLUMNS = (9, 7, 15, 6, 5, 2, 2, 8, 8, 8, 8, 11, 12, 12)
"""Groups per column, as in `gan_networks.py`."""
CLIP = 2**20
SECONDS = 2.0


class Case:
    """Rows, weights and norms of one size."""

    def __init__(self, rows: int, hidden: int) -> None:
        rng = np.random.default_rng(1)
        encoding = Encoding.of([np.full(codes, 1000.0) for codes in COLUMNS], 16)
        codes = np.stack([rng.integers(size, size=rows) for size in COLUMNS], axis=1).astype(np.uint16)
        self.blocks = encoding.blocks(codes)
        weights = rng.uniform(-1, 1, (encoding.bounds[-1] + 1, hidden)).astype(np.float32)
        output = rng.uniform(-1, 1, hidden).astype(np.float32)
        self.critic = Critic(weights.astype(np.float64), output.astype(np.float64))
        self.most_norm = NetworkSettings(len(COLUMNS), hidden).most_norm
        self.radius = CLIP - np.sqrt((len(COLUMNS) + 2) * hidden) / 2
        self.starts = np.arange(rows + 1, dtype=np.int64)

    def one_hot(self) -> np.ndarray:
        """Rows as networks of matrices want them."""
        dense = np.zeros((len(self.blocks), len(self.critic.weights)), dtype=np.float32)
        np.put_along_axis(dense, self.blocks.astype(np.int64), 1.0, axis=1)
        return dense


def ours(case: Case) -> Callable[[], np.ndarray]:
    def step() -> np.ndarray:
        given = contributions(case.critic, case.blocks, case.most_norm, case.radius)
        return bounded_sum(given, case.starts, CLIP, case.critic.size)

    return step


def _clipped_sum(torch, parts, most_norm):
    """Per-row gradients of all weights, cut jointly and added up."""
    norms = sum(part.flatten(1).square().sum(1) for part in parts).sqrt()
    factors = most_norm / norms.clamp(min=most_norm)
    return torch.cat([torch.einsum("n,n...->...", factors, part).flatten() for part in parts]).numpy()


def torch_func(case: Case) -> Callable[[], np.ndarray]:
    torch = importlib.import_module("torch")
    weights, output = (torch.tensor(part, dtype=torch.float32) for part in case.critic)
    rows = torch.tensor(case.one_hot())

    def score(weights, output, row):
        return torch.nn.functional.leaky_relu(row @ weights, SLOPE) @ output

    gradients = torch.func.vmap(torch.func.grad(score, argnums=(0, 1)), in_dims=(None, None, 0))
    return lambda: _clipped_sum(torch, gradients(weights, output, rows), case.most_norm)


def _network(torch, case: Case):
    weights, output = (torch.tensor(part, dtype=torch.float32) for part in case.critic)
    first = torch.nn.Linear(*weights.shape, bias=False)
    last = torch.nn.Linear(len(output), 1, bias=False)
    first.weight.data, last.weight.data = weights.T.contiguous(), output[None, :].contiguous()
    return torch.nn.Sequential(first, torch.nn.LeakyReLU(SLOPE), last)


def opacus(case: Case) -> Callable[[], np.ndarray]:
    torch = importlib.import_module("torch")
    model = importlib.import_module("opacus").GradSampleModule(_network(torch, case), loss_reduction="sum")
    rows = torch.tensor(case.one_hot())

    def step() -> np.ndarray:
        model.zero_grad(set_to_none=True)
        for parameter in model.parameters():
            parameter.grad_sample = None
        model(rows).sum().backward()
        hidden, out = (parameter.grad_sample for parameter in model.parameters())
        return _clipped_sum(torch, [hidden.transpose(1, 2), out[:, 0]], case.most_norm)

    return step


def opacus_ghost(case: Case) -> Callable[[], np.ndarray]:
    """Opacus without writing single gradients out: norms in a first pass back, the weighted sum in a second one."""
    torch = importlib.import_module("torch")
    module = importlib.import_module("opacus.grad_sample.grad_sample_module_fast_gradient_clipping")
    settings = {"loss_reduction": "sum", "max_grad_norm": case.most_norm, "use_ghost_clipping": True}
    model = module.GradSampleModuleFastGradientClipping(_network(torch, case), **settings)
    rows = torch.tensor(case.one_hot())

    def step() -> np.ndarray:
        model.zero_grad(set_to_none=True)
        scores = model(rows)[:, 0]
        scores.sum().backward(retain_graph=True)
        factors = model.get_clipping_coef().detach()
        model.zero_grad(set_to_none=True)
        model.disable_hooks()
        (factors * scores).sum().backward()
        model.enable_hooks()
        hidden, out = (parameter.grad for parameter in model.parameters())
        return torch.cat([hidden.T.flatten(), out.flatten()]).numpy()

    return step


ENGINES = {"ours": ours, "torch.func": torch_func, "opacus": opacus, "opacus ghost": opacus_ghost}


def engines() -> list[str]:
    """What can run here."""
    both = ("torch", "opacus")
    needs = {"ours": (), "torch.func": ("torch",), "opacus": both, "opacus ghost": both}
    return [name for name, packages in needs.items() if all(importlib.util.find_spec(item) for item in packages)]


def check(case: Case, engine: str, found: np.ndarray) -> float:
    """Largest difference from our sum, as a share of the norm of one row."""
    grid = ours(case)() * (case.most_norm / case.radius)
    scale = case.most_norm / case.radius if engine == "ours" else 1.0
    return float(np.abs(found * scale - grid).max() / case.most_norm)


def main() -> None:
    """Print one line per engine and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=977)
    parser.add_argument("--hidden", type=int, nargs="*", default=[32, 1024])
    parser.add_argument("--engines", nargs="*", default=engines())
    given = parser.parse_args()
    for package in ("torch", "opacus"):
        if importlib.util.find_spec(package):
            print(package, importlib.import_module(package).__version__)
    if importlib.util.find_spec("torch"):
        importlib.import_module("torch").set_num_threads(1)
    print(f"{given.rows} rows a step, one thread")
    print(f"{'hidden':<8}{'engine':<14}{'rows/s':>12}{'wall ms':>10}{'CPU ms':>10}{'off by, norms':>15}")
    for hidden in given.hidden:
        case = Case(given.rows, hidden)
        for engine in given.engines:
            step = ENGINES[engine](case)
            off = check(case, engine, step())
            steps, wall, cpu = 0, time.perf_counter(), time.process_time()
            while time.process_time() - cpu < SECONDS:
                step()
                steps += 1
            wall, cpu = (time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps
            print(f"{hidden:<8}{engine:<14}{given.rows / cpu:>12,.0f}", end="")
            print(f"{1e3 * wall:>10.2f}{1e3 * cpu:>10.2f}{off:>15.1e}", flush=True)


if __name__ == "__main__":
    main()
