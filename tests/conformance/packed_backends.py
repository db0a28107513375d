"""Backends that take packs of `small_cases.identity`, each as the target `python:packed_backends:NAME`.

`x` of a case is (fault number, case number); what stands before it, and before the output `y`, is the case's prefix.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]

PATIENCE_S = 30
"""How long a worker waits for another one."""


def right(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    return {f"{name.removesuffix('x')}y": x for name, x in feeds.items()}


def wrong(model: bytes, feeds: Feeds) -> dict[str, Array]:
    return {name: y + 1 for name, y in right(model, feeds).items()}


def numbers(feeds: Feeds) -> set[int]:
    return {int(x[1]) for x in feeds.values()}


def aborts_on_3_and_9(model: bytes, feeds: Feeds) -> dict[str, Array]:
    if numbers(feeds) & {3, 9}:
        os.abort()
    return right(model, feeds)


def refuses_3_and_9(model: bytes, feeds: Feeds) -> dict[str, Array]:
    if numbers(feeds) & {3, 9}:
        raise ValueError("three or nine")
    return right(model, feeds)


def aborts_on_3_beside_9(model: bytes, feeds: Feeds) -> dict[str, Array]:
    if numbers(feeds) >= {3, 9}:
        os.abort()
    return right(model, feeds)


def wrong_and_aborts_on_3_beside_9(model: bytes, feeds: Feeds) -> dict[str, Array]:
    aborts_on_3_beside_9(model, feeds)
    return wrong(model, feeds)


def in_two_workers(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """Right, once two workers have been asked; each leaves a file with its process id in the working directory."""
    Path(f"{os.getpid()}.worker").touch()
    deadline = time.monotonic() + PATIENCE_S
    while len(list(workers())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return right(model, feeds)


def workers() -> Iterator[int]:
    """The process ids that `in_two_workers` has left in the working directory."""
    return (int(path.stem) for path in Path().glob("*.worker"))


def sleeps(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """Right after 20 ms, in which the processor is free: two workers do twice as much."""
    time.sleep(0.02)
    return right(model, feeds)


def in_each_other_s_way(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """The same on a device that takes four times as long for each of two workers: together they do half as much."""
    Path(f"{os.getpid()}.worker").touch()
    time.sleep(0.02 * (len(list(workers())) ** 2 - 1))
    return sleeps(model, feeds)


def alone_on_the_device(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """The same on a device that ends every worker but the first."""
    with contextlib.suppress(FileExistsError), Path("first").open("x") as file:
        file.write(str(os.getpid()))
    if Path("first").read_text() != str(os.getpid()):
        os.abort()
    return sleeps(model, feeds)
