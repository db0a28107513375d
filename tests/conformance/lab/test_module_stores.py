"""A lab keeps the module stores that are in use, and not those of each state that the sources ever had."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from epcheck.conformance import lab
from epcheck.conformance.lab import module_stores
from epcheck.conformance.lab.folder import Layout

DAY_S = 86_400.0


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout.of(tmp_path / "lab")
    layout.home.mkdir(parents=True)
    return layout


def aged(layout: Layout, name: str, days: float) -> str:
    """A file of the lab that was used so many days ago."""
    path = layout.home / name
    path.write_bytes(b"x")
    os.utime(path, (time.time() - days * DAY_S,) * 2)
    return name


def left(layout: Layout) -> set[str]:
    return {path.name for path in layout.home.iterdir()}


def test_a_store_that_was_not_used_for_two_weeks_goes(layout: Layout) -> None:
    aged(layout, f"modules-{1:016x}", 15)
    kept = {aged(layout, f"modules-{2:016x}", 13), aged(layout, "other-0123456789abcdef", 100)}
    module_stores.prune(layout)
    assert left(layout) == kept


def test_those_that_were_used_last_stay(layout: Layout) -> None:
    names = [aged(layout, f"modules-{number:016x}", 13 - number / 10) for number in range(module_stores.MOST_KEPT + 3)]
    module_stores.prune(layout)
    assert left(layout) == set(names[3:])


def test_what_a_killed_worker_was_writing_goes(layout: Layout) -> None:
    aged(layout, f"modules-{1:016x}.4711", 0.1)
    kept = {aged(layout, f"modules-{1:016x}.4712", 0)}
    module_stores.prune(layout)
    assert left(layout) == kept


def test_a_lab_without_a_home_has_nothing_to_remove(tmp_path: Path) -> None:
    module_stores.prune(Layout.of(tmp_path))


def test_a_store_counts_as_used_when_a_worker_is_to_read_it(layout: Layout) -> None:
    store = module_stores.module_store(layout, "runtime")
    aged(layout, store.name, 15)
    assert module_stores.module_store(layout, "runtime") == store
    module_stores.prune(layout)
    assert left(layout) == {store.name}


@pytest.mark.skipif(sys.platform == "win32", reason="no lab there, and no shared locks")
def test_nothing_goes_while_another_run_uses_the_lab(layout: Layout) -> None:
    old = aged(layout, f"modules-{1:016x}", 15)
    with lab.in_use(layout.folder):
        with lab.in_use(layout.folder):
            pass
        assert old in left(layout)
    assert left(layout) == {"in-use"}
