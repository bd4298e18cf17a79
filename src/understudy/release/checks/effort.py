"""Effort: how much of a folder `verify` looks at unless it is told to look at everything, and what it left out.

A folder may come from a stranger, and a few kilobytes on a disk can stand for terabytes of zeros or billions of rows.
So whatever grows with a folder's content has a limit, and what lies beyond it is named instead of being read.
"""

import math
from dataclasses import dataclass, field

__all__ = ["Effort"]

FILE_BYTES = 2**34
CELLS = 2**27
NOISY_VALUES = 2**24
MODEL_BYTES = 2**28


@dataclass(slots=True)
class Effort:
    """What may still be read, and what was not checked. Without limits everything is."""

    file_bytes: float = math.inf
    cells: float = math.inf
    noisy_values: int | None = None
    model_bytes: float = math.inf
    unchecked: list[str] = field(default_factory=list)

    @classmethod
    def limited(cls) -> "Effort":
        """Enough for about 100 million values; at most a minute and a GiB of memory."""
        return cls(FILE_BYTES, CELLS, NOISY_VALUES, MODEL_BYTES)

    def reads(self, size: int, what: str) -> bool:
        """Whether a file of so many bytes may still be read; if not, `what` is noted as unchecked."""
        if size > self.file_bytes:
            self.unchecked.append(what)
            return False
        self.file_bytes -= size
        return True
