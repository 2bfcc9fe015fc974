"""Arrays of numbers that credit is made of. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]


def joined(arrays: Sequence[Array]) -> Array:
    """Return the arrays one after the other, as float64; of none an empty one."""
    return np.concatenate([np.zeros(0), *arrays])
