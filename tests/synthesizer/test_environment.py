"""Environment: the real one is private, says the day in UTC and never repeats a name."""

from datetime import timedelta

from understudy.synthesizer.pipeline import Environment


def test_the_real_environment() -> None:
    environment = Environment.real()
    assert environment.randomizer.private is True
    assert environment.now().utcoffset() == timedelta(0)
    assert len({environment.run() for _ in range(100)}) == 100
