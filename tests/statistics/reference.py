"""An independent sampler of the discrete Gaussian and Laplace distributions: rejection with exact fractions, no tables.

Canonne, Kamath and Steinke (2020), algorithms 1 to 3, written plainly. Slow; seeded, because it only serves tests.
"""

import random
from fractions import Fraction


def bernoulli_exp(generator: random.Random, exponent: Fraction) -> bool:
    """True with probability e^−exponent."""
    while exponent > 1:
        if not bernoulli_exp(generator, Fraction(1)):
            return False
        exponent -= 1
    trial = 1
    while generator.randrange(exponent.denominator * trial) < exponent.numerator:
        trial += 1
    return trial % 2 == 1


def laplace(generator: random.Random, scale: int) -> int:
    """Discrete Laplace noise of a whole scale."""
    while True:
        rest = generator.randrange(scale)
        if not bernoulli_exp(generator, Fraction(rest, scale)):
            continue
        turns = 0
        while bernoulli_exp(generator, Fraction(1)):
            turns += 1
        magnitude = rest + scale * turns
        negative = generator.randrange(2) == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def gaussian(generator: random.Random, variance: Fraction) -> int:
    """Discrete Gaussian noise."""
    scale = int(float(variance) ** 0.5) + 1
    while True:
        candidate = laplace(generator, scale)
        excess = abs(candidate) - variance / scale
        if bernoulli_exp(generator, excess**2 / (2 * variance)):
            return candidate
