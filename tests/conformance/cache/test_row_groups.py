"""Row groups: what is put there is found there, what is no row is a miss, and nothing is executed."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from epcheck.conformance.cache import cache, row_groups
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import RowGroups
from epcheck.generators import suite

Row = tuple[int, bytes | None]
ROOT = Path(__file__).parents[3]
ROWS = {"a": (1, b"x"), "b": (2, None)}

UNREADABLE = [
    b"", b"garbage", b"\xc1", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 10_000, b"\xc7\xff\x01",
    msgspec.msgpack.encode(ROWS)[:-1], msgspec.msgpack.encode(ROWS) + b"\0", pickle.dumps(ROWS),
]  # fmt: skip
"""Among them lengths of 4 GiB that are not there, and lists in lists."""

OF_OTHER_TYPES = [None, 7, "a", [1, 2], {"a": 1}, {"a": [1]}, {"a": [1, b"", 2]}, {"a": ["1", b""]}, {1: [1, b""]},
                  {"a": [1, "text"]}, {"a": [1.5, b""]}, {"a": {"x": 1}}]  # fmt: skip


def row_groups_of(kept: Cache, kind: str = "prepared", row: Any = Row, who: bytes = b"") -> RowGroups:
    return RowGroups(kept, kind, str, row, who)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


@pytest.fixture
def kept(path: Path) -> Iterator[Cache]:
    with closing(Cache(path)) as opened:
        yield opened


def test_what_is_put_into_a_row_group_is_found_there_by_the_next_run(path: Path) -> None:
    with closing(Cache(path)) as kept:
        mine = row_groups_of(kept)
        mine.put("Slice-13/float32", "a", (1, b"x"))
        mine.put("Slice-13/float32", "b", (2, None))
        mine.put("TopK-11/int8", "c", (3, b""))
        mine.write()
    with closing(Cache(path)) as kept:
        found = row_groups_of(kept).of(["TopK-11/int8", "Slice-13/float32", "Slice-13/int8", "TopK-11/int8"])
        assert found == {"Slice-13/float32": {"a": (1, b"x"), "b": (2, None)}, "TopK-11/int8": {"c": (3, b"")}}
        assert row_groups_of(kept, who=b"somebody").of(["TopK-11/int8"]) == {}
        assert row_groups_of(kept, "opinion").of(["TopK-11/int8"]) == {}


def test_a_row_group_keeps_its_rows_when_others_are_added_and_replaced(kept: Cache) -> None:
    """Also while it still waits to be written to the file."""
    mine = row_groups_of(kept)
    for name, row in (("a", (1, None)), ("b", (2, None)), ("a", (3, None))):
        mine.put("Slice-13/float32", name, row)
        mine.write()
        assert mine.of(["Slice-13/float32"])["Slice-13/float32"][name] == row
    assert mine.of(["Slice-13/float32"]) == {"Slice-13/float32": {"a": (3, None), "b": (2, None)}}


def test_a_row_group_that_goes_on_in_the_next_batch_is_read_once(kept: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = row_groups_of(kept, row=str)
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
    mine = row_groups_of(kept, row=int)
    for number in range(row_groups.UNWRITTEN + 1):
        mine.put(f"row group {number}", "row", number)
    written = mine.of([f"row group {number}" for number in range(row_groups.UNWRITTEN + 1)])
    assert len(written) == row_groups.UNWRITTEN // 2


def test_without_a_file_nothing_is_kept() -> None:
    mine = row_groups_of(Cache(None))
    mine.put("a", "row", 1)
    mine.write()
    assert mine.of(["a"]) == {}


@pytest.mark.parametrize("value", [*UNREADABLE, *map(msgspec.msgpack.encode, OF_OTHER_TYPES)])
def test_what_is_no_row_group_is_a_miss_and_is_replaced(kept: Cache, value: bytes) -> None:
    kept.put({cache.key("prepared", "", "a"): value})
    mine = row_groups_of(kept)
    assert mine.of(["a"]) == {"a": {}}
    mine.put("a", "row", (1, None))
    mine.write()
    assert mine.of(["a"]) == {"a": {"row": (1, None)}}


def test_a_case_stands_with_those_of_its_operator_version_and_dtypes() -> None:
    case = suite.case_by_id("TopK-11/float32/defaults[initializer]")
    assert row_groups.group_of(case) == "TopK-11/float32"


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
    kept.put({cache.key("prepared", "", "a"): payload})
    assert row_groups_of(kept).of(["a"]) == {"a": {}}
    assert not witness.exists()


def test_nothing_is_unpickled_but_what_our_own_process_sent() -> None:
    """Requests to preparers and examiners, which read them before anything of a stranger, and the modules of the lab's
    Python, in the lab."""
    pattern = re.compile(r"\b(pickle|marshal|shelve)\.(loads?|Unpickler)\b|allow_pickle=True")
    folders = [ROOT / name for name in ("api", "cli", "conformance", "generators", "models", "reports")]
    texts = {path.name: path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py")}
    found = {name for name, text in texts.items() if pattern.search(text)}
    assert found == {"preparer.py", "examiner.py", "module_store.py"}
