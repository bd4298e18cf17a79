"""Types of NumPy arrays as they are spoken of everywhere."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Shorts = npt.NDArray[np.int32]
Unsigned = npt.NDArray[np.unsignedinteger]
"""Codes of one column, in the smallest type that holds them."""
Integers = npt.NDArray[np.integer]
Columns = Mapping[str, Integers]
"""Column name → a code for each record."""
