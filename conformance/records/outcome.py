"""What one target did with one case, before it is judged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from epcheck.generators.array import Array

DONE, PLACED, FAILED, CRASHED, TIMED_OUT = "done", "placed", "failed", "crashed", "timed out"


@dataclass(frozen=True)
class Outcome:
    """kind: `done`, `placed` (asked where its node goes, nothing ran), `failed` (a clean error at `stage`), `crashed`
    or `timed out`.

    assignment: (provider, operator) of each node, None where the runtime keeps no record. unwritten: outputs that left
    a dirtied buffer as it was. repeat_differs: outputs that changed on a second run of the session.
    exact: the outputs are the expected ones to the last bit; those of a pack are left out then.
    create_s, run_s: seconds. shared: cases in the session. log_tail: the end of the worker's stderr, but for `done`.
    """

    kind: str
    stage: str = ""
    message: str = ""
    outputs: Mapping[str, Array] = field(default_factory=dict)
    assignment: tuple[tuple[str, str], ...] | None = None
    unwritten: tuple[str, ...] = ()
    repeat_differs: tuple[str, ...] = ()
    create_s: float | None = None
    run_s: float | None = None
    log_tail: str = ""
    shared: int = 1
    exact: bool = False

    def signature(self) -> str:
        """Equal for two outcomes that agree: same kind, stage and bits (not the same words or times)."""
        words = (self.kind, self.stage, self.unwritten, self.repeat_differs, self.exact)
        return f"{words!r} {bits(self.outputs)}"


def bits(outputs: Mapping[str, Array]) -> str:
    """Equal for outputs of the same names, dtypes, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(outputs):
        value = outputs[name]
        digest.update(
            f"{name}:{_in_words(value.dtype)}:{value.shape}:".encode("utf-8", "backslashreplace") + value.tobytes()
        )
    return digest.hexdigest()


@cache
def _in_words(dtype: np.dtype[Any]) -> str:
    """`str` of it, which numpy works out anew each time."""
    return str(dtype)
