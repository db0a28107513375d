"""Files of a store whose columns are of other types, and files whose names are no UTF-8: a sentence, and the others are
read; or the right answer where the content means the same."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epcheck.reports.store.query import query_store
from epcheck.reports.store.store import open_store
from tests.command_line import call, refused
from tests.fuzzing.parquet_mutations import Content, another_order, retype, written
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import many

SQL = "SELECT * EXCLUDE (record) FROM outcomes ORDER BY run_id, target, case_id"
OF_STORES = (
    ("trend", "--store", "store"), ("site", "store", "--out", "site"), ("store", "list", "--store", "store"),
    ("store", "check", "--store", "store"),
)  # fmt: skip


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The files of two nights in a store; the second is what the tests change."""
    paths = [keep(tmp_path / "store", a_night(day), list(many(24))) for day in (1, 2)]
    with contextlib.chdir(tmp_path):
        yield str(paths[0].relative_to(tmp_path)), str(paths[1].relative_to(tmp_path))


def content_of(path: str) -> Content:
    keys = {key.decode(): value for key, value in pq.read_metadata(path).metadata.items()}
    return Content(pq.read_table(path).replace_schema_metadata(None), keys)


def retyped(path: str, **kinds: pa.DataType) -> None:
    """Write the file with columns of other types, and checksums that fit."""
    content = content_of(path)
    for name, kind in kinds.items():
        retype(content, name, kind)
    Path(path).write_bytes(written(content))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("case_id", pa.int64()), ("status", pa.int32()), ("target", pa.binary()), ("reason", pa.decimal128(20, 3)),
        ("since_version", pa.string()), ("since_version", pa.int64()), ("since_version", pa.uint32()),
        ("create_s", pa.string()), ("create_s", pa.float32()), ("ulp_max", pa.timestamp("us")),
        ("failing", pa.string()), ("failing", pa.int8()), ("dtype", pa.list_(pa.string())),
        ("operator", pa.struct([("a", pa.int64()), ("b", pa.string())])), ("ulp_counts", pa.string()),
        ("ulp_counts", pa.list_(pa.string())), ("assignment", pa.map_(pa.string(), pa.int64())), ("record", pa.null()),
    ],
)  # fmt: skip
def test_a_column_of_another_type_is_named(nights: tuple[str, str], name: str, kind: pa.DataType) -> None:
    retyped(nights[1], **{name: kind})
    sentence = refused("diff", *nights)
    assert sentence.startswith(f"{nights[1]}: has the column '{name}' of another type (")
    assert sentence.endswith("; write it again with: epcheck report RUN --parquet")
    (problem,) = open_store(Path("store")).problems
    assert problem.sentence == sentence
    for command in OF_STORES:
        done = call(*command)
        assert done.code == (2 if command[1] == "check" else 0)
        assert f"has the column '{name}' of another type" in done.out + done.err, command


def test_the_same_values_as_arrow_holds_them_are_read(nights: tuple[str, str]) -> None:
    right = query_store(open_store(Path("store")), SQL)[0].to_pylist()
    content = content_of(nights[1])
    kinds = (pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()))
    names = [field.name for field in content.table.schema if pa.types.is_string(field.type)]
    for number, name in enumerate(names):
        retype(content, name, kinds[number % 3])
    content.options = {"store_schema": True, "row_group_size": 7, "compression": "none", "version": "1.0"}
    another_order(content, Random(1))
    content.table = content.table.append_column("further", pa.array([{"a": 1}] * content.table.num_rows))
    Path(nights[1]).write_bytes(written(content))
    assert query_store(open_store(Path("store")), SQL)[0].to_pylist() == right
    assert "further" not in query_store(open_store(Path("store")), "SELECT * FROM outcomes")[0].column_names
    for command in (*OF_STORES, ("diff", *nights)):
        assert (call(*command).code, call(*command).err) == (0, ""), command


def rename(content: Content, **names: str) -> None:
    content.table = content.table.rename_columns([names.get(name, name) for name in content.table.schema.names])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda c: rename(c, case_id="CASE_ID"), "lacks the column 'case_id'"),
        (lambda c: rename(c, target="target.x"), "lacks the column 'target'"),
        (lambda c: rename(c, blame="Status"), "has two columns 'status'"),
        (lambda c: rename(c, ulp_counts="x"), "lacks the column 'ulp_counts'"),
    ],
)
def test_a_column_of_another_name_is_named(nights: tuple[str, str], change: Any, what: str) -> None:
    content = content_of(nights[1])
    change(content)
    Path(nights[1]).write_bytes(written(content))
    assert refused("diff", *nights).startswith(f"{nights[1]}: {what}; write it again")


@pytest.mark.parametrize("name", ["case_id", "operator", "domain", "status", "reading", "dtype", "since_version"])
def test_rows_that_lack_what_each_has_are_named(nights: tuple[str, str], name: str) -> None:
    content = content_of(nights[1])
    kind = content.table.schema.field(name).type
    values = [None, *content.table[name].to_pylist()[1:]]
    content.table = content.table.set_column(content.table.schema.get_field_index(name), name, pa.array(values, kind))
    Path(nights[1]).write_bytes(written(content))
    assert refused("diff", *nights) == f"{nights[1]}: has rows without a value in the column '{name}'"
    assert all(call(*command).code in (0, 2) for command in OF_STORES)


posix = pytest.mark.skipif(sys.platform != "linux", reason="a file system that takes any bytes as a name")


@posix
def test_a_file_whose_name_is_no_utf_8_is_named_and_the_others_are_read(nights: tuple[str, str]) -> None:
    bad = Path("store", os.fsdecode(b"\xff\xfe.parquet"))
    bad.write_bytes(Path(nights[0]).read_bytes())
    Path("store", os.fsdecode(b"\xff.txt")).touch()
    named = r"store/\udcff\udcfe.parquet: its path is not UTF-8; rename it"
    files = ("--json", "trend.json", "--html", "trend.html", "--markdown", "trend.md")
    for command in (("trend", "--store", "store", *files), *OF_STORES):
        done = call(*command)
        assert done.code == (2 if command[1] == "check" else 0), command
        assert named in done.out + done.err, command
    assert r"store/\udcff.txt: is not a file of a store" in call("store", "check", "--store", "store").err
    assert refused("diff", nights[0], str(bad)) == named
    assert refused("store", "add", str(bad), "--store", "other") == named
