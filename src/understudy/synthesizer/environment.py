"""Environment: what a run takes from the machine. Only tests replace it."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from understudy.privacy.randomizer import Randomizer
from understudy.privacy.secure import SecureRandomizer

__all__ = ["Environment"]


@dataclass(frozen=True, slots=True)
class Environment:
    """Noise, clock and name of a run.

    With a randomizer that does not call itself private, the release makes no claim and `verify` rejects it.
    """

    randomizer: Randomizer
    now: Callable[[], datetime]
    run: Callable[[], str]

    def begun(self) -> "Environment":
        """The same with a clock that has stopped now, so that nothing later can tell how long a run took."""
        moment = self.now()
        return replace(self, now=lambda: moment)

    @classmethod
    def real(cls) -> "Environment":
        """Secure noise, the clock in UTC, a random name."""
        return cls(SecureRandomizer(), lambda: datetime.now(UTC), lambda: uuid.uuid4().hex)
