"""The order in which dtypes are listed."""

from __future__ import annotations

import re


def dtype_order(dtype: str) -> tuple[object, ...]:
    """Sorts floating-point dtypes first, then signed, unsigned and the rest, each by width."""
    kinds = ("float", "bfloat", "int", "uint")
    return tuple(
        (kinds.index(m[1]), int(m[2]), part) if (m := re.fullmatch(r"(b?float|u?int)(\d+)", part)) else (9, 0, part)
        for part in dtype.split("-")
    )
