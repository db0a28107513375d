"""The type of an array, whatever its shape and dtype; and whose a dtype is."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def is_of_ml_dtypes(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is one that ml_dtypes adds to NumPy. `isbuiltin` is 1 of NumPy's own, but 0 of those of an array
    that was unpickled."""
    return dtype.isbuiltin == 2
