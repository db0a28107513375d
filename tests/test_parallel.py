"""When the tests run in several processes, in which order, and how long they are said to take."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import parallel

HERE = Path(__file__).parent
NOTHING_CHOSEN = {"numprocesses": None, "tx": [], "usepdb": False, "trace": False, "dist": "no"}


@pytest.fixture(autouse=True)
def seconds_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file in place of the committed one."""
    file = tmp_path / "seconds.json"
    monkeypatch.setattr(parallel, "SECONDS_FILE", file)
    parallel.write_seconds({"tests/test_a.py::test_it[x]": 300.04, "tests/test_b.py::test_it": 3.0, "c.py::c": 1.0})
    return file


def chosen(argument: str, **options: Any) -> tuple[Any, str]:
    """How many processes run the tests, and how they are spread, where a user names this and gives these options."""
    option = SimpleNamespace(**{**NOTHING_CHOSEN, **options})
    manager = SimpleNamespace(register=lambda *_: None, hasplugin=lambda _: True)
    parallel.choose_processes(SimpleNamespace(option=option, pluginmanager=manager, args=[argument]))  # type: ignore[arg-type]
    return option.numprocesses, option.dist


@pytest.mark.parametrize(
    ("argument", "options", "expected"),
    [
        (str(HERE), {}, ("logical", "loadfile")),
        (__file__, {}, (None, "no")),
        (f"{__file__}::test_it", {}, (None, "no")),
        (str(HERE), {"numprocesses": 0}, (0, "no")),
        (str(HERE), {"numprocesses": 3}, (3, "loadfile")),
        (__file__, {"numprocesses": 3, "dist": "worksteal"}, (3, "worksteal")),
        (str(HERE), {"usepdb": True}, (None, "no")),
        (str(HERE), {"trace": True}, (None, "no")),
    ],
)
def test_folders_run_in_parallel_and_the_user_has_the_last_word(
    argument: str, options: dict[str, Any], expected: tuple[Any, str]
) -> None:
    assert chosen(argument, **options) == expected


def test_what_takes_long_is_recorded(seconds_file: Path) -> None:
    assert seconds_file.read_text(encoding="utf-8") == (
        '{\n "mean of the others": 1.0,\n "long": {\n  "tests/test_a.py::test_it[x]": 300.0,\n'
        '  "tests/test_b.py::test_it": 3.0\n }\n}\n'
    )


def test_the_duration_is_that_of_all_processes_or_of_the_longest_module() -> None:
    long, short = "tests/test_a.py::test_it[x]", "tests/test_b.py::test_it"
    assert (
        parallel.describe_duration([long, *(f"c.py::{n}" for n in range(500))], 2)
        == "501 tests: about 8 min on 2 cores"
    )
    assert parallel.describe_duration([long, short], 4) == "2 tests: about 5 min on 4 cores"
    assert parallel.describe_duration([short], 1) == "1 test: less than 1 min on 1 core"


def test_the_longest_modules_are_the_first() -> None:
    ids = ["c.py::c", "tests/test_b.py::test_it", "c.py::d", "tests/test_a.py::test_it[x]"]
    items: list[Any] = [SimpleNamespace(nodeid=test_id) for test_id in ids]
    plugin = parallel.Plugin(SimpleNamespace(workerinput={}))  # type: ignore[arg-type]
    plugin.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == [ids[3], ids[1], ids[0], ids[2]]


def test_modules_that_share_what_takes_long_to_make_run_in_one_process() -> None:
    assert parallel.module_of("tests/generators/test_readings.py::test_it") == parallel.module_of(
        "tests/generators/test_built_models.py::test_it"
    )
    assert all((HERE.parent / name).is_file() for pair in parallel.TOGETHER.items() for name in pair)
