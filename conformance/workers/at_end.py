"""What is done when this process ends, also when a signal ends it at once. It imports nothing that takes time."""

from __future__ import annotations

import atexit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_steps: list[Callable[[], None]] = []


def register(step: Callable[[], None]) -> Callable[[], None]:
    """Have a function called once at the end; a decorator."""
    _steps.append(step)
    return step


@atexit.register
def finish() -> None:
    """Call what is registered, the last first: for a process that ends without Python's own end."""
    while _steps:
        _steps.pop()()
