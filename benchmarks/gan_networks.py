"""Speed of the networks of `dpwgan` by themselves: steps and drawn records a second, on a processor and on a GPU.

    python -m benchmarks.gan_networks                     # NumPy, and torch where it is installed, on what is there
    python -m benchmarks.gan_networks --engines numpy torch:cuda

A step is what follows a noisy sum: the drawn records' gradient, the critic's move and, every other step, the
generator's. Rows, their gradients and the noise are not in it: they stay on the processor, whatever the device. Two
sizes: the default of `dpwgan` on a table like Adult (14 columns, 113 groups), and that of the challenge entry (hidden
layers of 1,024) with large batches.
"""

import argparse
import importlib
import importlib.util
import os
import time

import numpy as np

from understudy.methods.networks import Critic, Encoding, NetworkSettings, NumpyNetworks

COLUMNS = (9, 7, 15, 6, 5, 2, 2, 8, 8, 8, 8, 11, 12, 12)
SIZES = {
    "default": {"hidden": 32, "generator_hidden": 32, "latent": 16, "batch": 256},
    "large": {"hidden": 1024, "generator_hidden": 1024, "latent": 64, "batch": 4096},
}
STEPS = {"default": 100, "large": 6}


def engines() -> list[str]:
    """What can run here."""
    if importlib.util.find_spec("torch") is None:
        return ["numpy"]
    cuda = importlib.import_module("torch").cuda.is_available()
    return ["numpy", "torch:cpu", *(["torch:cuda"] if cuda else [])]


def networks(engine: str, settings: NetworkSettings):
    if engine == "numpy":
        return NumpyNetworks(settings)
    from understudy.methods.torch_networks import TorchNetworks

    return TorchNetworks(settings, engine.removeprefix("torch:"))


def measure(engine: str, size: str) -> tuple[float, float]:
    """Milliseconds of a step: wall, and CPU of the whole process."""
    chosen = NetworkSettings(len(COLUMNS), **SIZES[size])
    made = networks(engine, chosen)
    made.start(Encoding.of([np.full(codes, 1000.0) for codes in COLUMNS], 16))
    rng = np.random.default_rng(1)
    real = Critic(rng.normal(size=made.critic.weights.shape), rng.normal(size=made.critic.output.shape))
    steps = STEPS[size] * (10 if engine == "torch:cuda" else 1)
    for _ in range(4):
        made.improve(real)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        made.improve(real)
    return 1e3 * (time.perf_counter() - wall) / steps, 1e3 * (time.process_time() - cpu) / steps


def main() -> None:
    """Print one line per engine and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="*", default=engines())
    given = parser.parse_args()
    print(f"{os.cpu_count()} processor cores, numpy {np.__version__}")
    print(f"{'size':<10}{'engine':<12}{'wall ms a step':>16}{'CPU ms a step':>16}{'drawn records/s':>18}")
    for size in SIZES:
        for engine in given.engines:
            wall, cpu = measure(engine, size)
            speed = SIZES[size]["batch"] / 2 / wall * 1e3  # records are drawn anew every other step
            print(f"{size:<10}{engine:<12}{wall:>16.2f}{cpu:>16.2f}{speed:>18,.0f}", flush=True)


if __name__ == "__main__":
    main()
