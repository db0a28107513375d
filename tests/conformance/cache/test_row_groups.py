"""Row groups: what is put there is found there, what is no row is a miss, and nothing is executed."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epcheck.conformance.cache import cache, row_groups
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import RowGroups, plain_pickle
from epcheck.conformance.records.opinion import Opinion
from epcheck.generators import suite

UNREADABLE = [
    b"", b"garbage", b"\x80\x05", b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\xff.", b"\x80\x05\x8e" + b"\xff" * 8,
    b"\x80\x05h\xff.", b"(" * 10_000, pickle.dumps({"a": 1})[:-3],
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


@pytest.fixture
def kept(path: Path) -> Iterator[Cache]:
    with closing(Cache(path)) as opened:
        yield opened


def test_what_is_put_into_a_row_group_is_found_there_by_the_next_run(path: Path) -> None:
    with closing(Cache(path)) as kept:
        mine = RowGroups(kept, "prepared")
        mine.put("Slice-13/float32", "a", (1, b"x"))
        mine.put("Slice-13/float32", "b", (2, None))
        mine.put("TopK-11/int8", "c", ())
        mine.write()
    with closing(Cache(path)) as kept:
        found = RowGroups(kept, "prepared").of(["TopK-11/int8", "Slice-13/float32", "Slice-13/int8", "TopK-11/int8"])
        assert found == {"Slice-13/float32": {"a": (1, b"x"), "b": (2, None)}, "TopK-11/int8": {"c": ()}}
        assert RowGroups(kept, "prepared", b"somebody").of(["TopK-11/int8"]) == {}
        assert RowGroups(kept, "opinion").of(["TopK-11/int8"]) == {}


def test_a_row_group_keeps_its_rows_when_others_are_added_and_replaced(kept: Cache) -> None:
    """Also while it still waits to be written to the file."""
    mine = RowGroups(kept, "prepared")
    for name, row in (("a", 1), ("b", 2), ("a", 3)):
        mine.put("Slice-13/float32", name, row)
        mine.write()
        assert mine.of(["Slice-13/float32"])["Slice-13/float32"][name] == row
    assert mine.of(["Slice-13/float32"]) == {"Slice-13/float32": {"a": 3, "b": 2}}


def test_a_row_group_that_goes_on_in_the_next_batch_is_read_once(kept: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = RowGroups(kept, "prepared")
    for name in "abc":
        mine.put(name, "row", name)
    mine.write()
    asked, original = list[int](), Cache.get

    def counted(self: Cache, keys: Any) -> dict[bytes, bytes]:
        asked.append(len(keys))
        return original(self, keys)

    monkeypatch.setattr(Cache, "get", counted)
    assert mine.of("ab") == {"a": {"row": "a"}, "b": {"row": "b"}}
    assert mine.of("bc") == {"b": {"row": "b"}, "c": {"row": "c"}}
    assert asked == [2, 1]


def test_new_rows_do_not_pile_up(kept: Cache) -> None:
    mine = RowGroups(kept, "prepared")
    for number in range(row_groups.UNWRITTEN + 1):
        mine.put(f"row group {number}", "row", number)
    written = mine.of([f"row group {number}" for number in range(row_groups.UNWRITTEN + 1)])
    assert len(written) == row_groups.UNWRITTEN // 2


def test_without_a_file_nothing_is_kept() -> None:
    mine = RowGroups(Cache(None), "prepared")
    mine.put("a", "row", 1)
    mine.write()
    assert mine.of(["a"]) == {}


@pytest.mark.parametrize("value", [*UNREADABLE, pickle.dumps([1, 2]), pickle.dumps(None)])
def test_what_is_no_row_group_is_a_miss_and_is_replaced(kept: Cache, value: bytes) -> None:
    kept.put({cache.key("prepared", "", "a"): value})
    mine = RowGroups(kept, "prepared")
    assert not mine.of(["a"]).get("a")
    mine.put("a", "row", 1)
    mine.write()
    assert mine.of(["a"]) == {"a": {"row": 1}}


def test_a_case_stands_with_those_of_its_operator_version_and_dtypes() -> None:
    case = suite.case_by_id("TopK-11/float32/defaults[initializer]")
    assert row_groups.group_of(case) == "TopK-11/float32"


@pytest.mark.parametrize("data", UNREADABLE)
def test_what_is_no_pickle_is_one_of_a_few_errors(data: bytes) -> None:
    with pytest.raises(row_groups.UNREADABLE):
        plain_pickle(data)


class Payload:
    """What an attacker puts into a pickle: a call that loading it makes."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.witness, "executed")


def test_a_row_executes_nothing(tmp_path: Path, kept: Cache) -> None:
    witness = tmp_path / "witness"
    payload = pickle.dumps({"row": Payload(witness)})
    pickle.loads(payload)
    assert witness.read_text() == "executed"
    witness.unlink()
    with pytest.raises(pickle.UnpicklingError, match=r"is no builtin type"):
        plain_pickle(payload)
    kept.put({cache.key("prepared", "", "a"): payload})
    assert RowGroups(kept, "prepared").of(["a"]) == {"a": {}}
    assert not witness.exists()


@pytest.mark.parametrize("harmless", [OSError, print, np.float32(1), Path("a"), Opinion("cpu", "pass")])
def test_a_row_makes_no_class_not_even_a_harmless_one(harmless: Any) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is no builtin type"):
        plain_pickle(pickle.dumps(harmless))


@pytest.mark.parametrize("plain", [{"a": (1, 2.5, None, b"x", "y", True)}, [[]], float("inf"), -(2**70)])
def test_builtin_types_are_all_that_a_row_needs(plain: Any) -> None:
    assert plain_pickle(pickle.dumps(plain)) == plain
