"""Files of a store as a stranger may write them: other types, names and orders of columns, row groups, encodings,
metadata and ends; with checksums that fit, or without."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epcheck.reports.checksum import NO_CHECKSUMS, PARQUET_KEY, parquet_with_checksums
from epcheck.reports.runs import parquet

TYPES: tuple[pa.DataType, ...] = (
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(),
    pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(4), pa.date32(),
    pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.time64("us"), pa.decimal128(20, 3), pa.decimal256(60, 10),
    pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()), pa.null(),
    pa.list_(pa.int64()), pa.list_(pa.string()), pa.large_list(pa.int64()), pa.list_(pa.list_(pa.int64())),
    pa.list_(pa.int32(), 2), pa.struct([("a", pa.int64()), ("b", pa.string())]), pa.map_(pa.string(), pa.int64()),
)  # fmt: skip

NAMES = (
    "",
    "a b",
    "a.b",
    "target.x",
    "\x1b[31m",
    "'; DROP VIEW outcomes; --",
    '"',
    "TARGET",
    "Case_Id",
    "x" * 5000,
    "é",
)
VALUES = (b"", b"x", b"\xff", b"{}", b"[]", b"2", b"3", b"5", b"-1", b"9" * 20, b"null", b"[" * 5000)
TEXTS = ("", "\0", "\x1b[31m", "<b>", "x" * 100_000, "no such status", "\u202e", "[bold]", "../../x", "a, b, ,", "é")


@dataclass
class Content:
    """What is written. keys: of the metadata. options: of the writer. is_checked: whether it gets checksums. end: what
    is done to the bytes."""

    table: pa.Table
    keys: dict[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)
    is_checked: bool = True
    end: Callable[[bytes], bytes] = bytes


Mutation = Callable[[Content, Random], str]
"""Changes what is written, and says how."""


def mutated(content: bytes, random: Random, mutations: Sequence[Mutation]) -> tuple[str, bytes]:
    """The file after one to three mutations, and what they are."""
    while True:
        found = pq.read_table(pa.BufferReader(content))
        keys = {key.decode(): value for key, value in pq.read_metadata(pa.BufferReader(content)).metadata.items()}
        changed = Content(found.replace_schema_metadata(None), keys)
        names = []
        try:
            for mutate in random.choices(mutations, k=random.choice((1, 1, 1, 2, 3))):
                names.append(f"{mutate.__name__} {mutate(changed, random)}")
            return ", ".join(names), written(changed)
        except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, KeyError):
            continue  # pyarrow cannot write that


def written(content: Content) -> bytes:
    """The file."""
    buffer = pa.BufferOutputStream()
    options = {"compression": "zstd", "store_schema": False, **content.options}
    rows = options.pop("row_group_size", 40)
    keys = dict(content.keys)
    if content.is_checked and PARQUET_KEY in keys:
        keys[PARQUET_KEY] = NO_CHECKSUMS.encode()
    with pq.ParquetWriter(buffer, content.table.schema, **options) as writer:
        writer.write_table(content.table, row_group_size=rows)
        writer.add_key_value_metadata(keys)
    data = memoryview(buffer.getvalue())
    if content.is_checked and PARQUET_KEY in keys:
        return content.end(b"".join(parquet_with_checksums(data)))
    return content.end(bytes(data))


def another_type(content: Content, random: Random) -> str:
    name, kind = random.choice(content.table.schema.names), random.choice(TYPES)
    return retype(content, name, kind)


def retype(content: Content, name: str, kind: pa.DataType) -> str:
    """Give a column another type, with its values where they can be of it."""
    at, column = content.table.schema.get_field_index(name), content.table[name]
    try:
        values = column.cast(kind)
    except (pa.ArrowException, NotImplementedError):
        values = pa.array([_value(kind)] * len(column), kind)
    content.table = content.table.set_column(at, pa.field(name, kind), values)
    return f"{name[:40]!r}: {kind}"


def _value(kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return decimal.Decimal("1.5")
    if pa.types.is_struct(kind):
        return {"a": 1, "b": "x"}
    if pa.types.is_map(kind):
        return [("x", 1)]
    if pa.types.is_nested(kind):
        return None
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return b"\xff\xfe\0a"
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "x"
    return None if pa.types.is_null(kind) or pa.types.is_temporal(kind) else 1


def missing_columns(content: Content, random: Random) -> str:
    names = random.sample(content.table.schema.names, random.choice((1, 1, 5, 20)))
    content.table = content.table.drop_columns(names)
    return f"{len(names)}, {names[0]}"


def another_name(content: Content, random: Random) -> str:
    names = list(content.table.schema.names)
    at = random.randrange(len(names))
    names[at] = random.choice((*NAMES, names[at].upper(), names[at - 1]))
    content.table = content.table.rename_columns(names)
    return f"{content.table.schema.names[at][:40]!r}"


def another_order(content: Content, random: Random) -> str:
    names = list(content.table.schema.names)
    random.shuffle(names)
    content.table = content.table.select(names)
    return ""


def further_columns(content: Content, random: Random) -> str:
    for number in range(random.choice((1, 3, 300))):
        kind = random.choice(TYPES)
        name = f"{random.choice((*NAMES, 'further'))}{number or ''}"
        values = pa.array([_value(kind)] * content.table.num_rows, kind)
        content.table = content.table.add_column(random.randrange(3), pa.field(name, kind), values)
    return ""


def other_row_groups(content: Content, random: Random) -> str:
    content.options["row_group_size"] = random.choice((1, 7, 1000))
    return str(content.options["row_group_size"])


def other_rows(content: Content, random: Random) -> str:
    count = content.table.num_rows
    rows = random.choice(([], list(range(count)) * 2, random.sample(range(count), count), list(range(count // 2))))
    content.table = content.table.take(pa.array(rows, pa.int64()))
    return str(len(rows))


def no_values(content: Content, random: Random) -> str:
    name = random.choice(content.table.schema.names)
    at, kind = content.table.schema.get_field_index(name), content.table.schema.field(name).type
    share = random.choice((0.05, 0.5, 1.0))
    values = [None if random.random() < share else value for value in content.table[name].to_pylist()]
    content.table = content.table.set_column(at, pa.field(name, kind), pa.array(values, kind))
    return f"{name[:40]!r}: {share}"


def other_values(content: Content, random: Random) -> str:
    name = random.choice(content.table.schema.names)
    at, kind = content.table.schema.get_field_index(name), content.table.schema.field(name).type
    numbers: tuple[Any, ...] = (0, -1, 2**31 - 1, -(2**31))
    if pa.types.is_floating(kind):
        numbers = (float("nan"), float("inf"), -0.0, 1e308)
    values = [random.choice(TEXTS if pa.types.is_string(kind) else numbers) for _ in range(content.table.num_rows)]
    content.table = content.table.set_column(at, pa.field(name, kind), pa.array(values, kind))
    return f"{name[:40]!r}"


def other_encoding(content: Content, random: Random) -> str:
    changes: dict[str, Any] = random.choice((
        {"use_dictionary": True}, {"use_dictionary": False}, {"compression": "none"}, {"compression": "snappy"},
        {"compression": "gzip"}, {"compression": "brotli"}, {"data_page_version": "2.0"}, {"version": "1.0"},
        {"write_statistics": False}, {"write_statistics": True}, {"store_schema": True}, {"write_page_index": True},
        {"write_page_checksum": True}, {"data_page_size": 64}, {"use_compliant_nested_type": False},
    ))  # fmt: skip
    content.options.update(changes)
    return str(changes)


def as_arrow_holds_it(content: Content, random: Random) -> str:
    """The same values as dictionaries or large strings, which the file says of itself."""
    content.options["store_schema"] = True
    for name in content.table.schema.names:
        if pa.types.is_string(content.table.schema.field(name).type) and random.random() < 0.5:
            kind = random.choice((pa.large_string(), pa.dictionary(pa.int32(), pa.string())))
            retype(content, name, kind)
    return ""


def other_metadata(content: Content, random: Random) -> str:
    key = random.choice((parquet.RUN_KEY, parquet.SCHEMA_KEY, parquet.COUNTS_KEY, PARQUET_KEY))
    value = random.choice((None, *VALUES))
    content.keys.pop(key, None)
    if value is not None:
        content.keys[key] = value
    content.is_checked = key != PARQUET_KEY and content.is_checked
    return f"{key} = {value!r:.20}"


def no_checksums(content: Content, _random: Random) -> str:
    content.keys.pop(PARQUET_KEY, None)
    content.is_checked = False
    return ""


def another_end(content: Content, random: Random) -> str:
    """The footer is cut, longer than the file, or of other bytes, and the magic bytes stay."""
    content.keys.pop(PARQUET_KEY, None)
    content.is_checked = False
    kind, share = random.choice(("cut", "length", "bytes", "hole")), random.random()

    def end(data: bytes) -> bytes:
        size = int.from_bytes(data[-8:-4], "little")
        start = len(data) - 8 - size
        at = start + int(share * size)
        match kind:
            case "cut":
                return data[: int(share * len(data))]
            case "length":
                other = (0, 1, size - 1, size + 1, 2**31, 2**32 - 1)[int(share * 6)]
                return data[:-8] + other.to_bytes(4, "little") + data[-4:]
            case "bytes":
                return data[:at] + Random(at).randbytes(4) + data[at + 4 :]
        return data[:at] + data[at + 9 : -8] + (size - 9 if size > 9 else 0).to_bytes(4, "little") + data[-4:]

    content.end = end
    return f"{kind} {share:.2f}"


OF_COLUMNS: tuple[Mutation, ...] = (
    another_type, another_type, another_type, another_type, missing_columns, another_name, another_name, another_order,
    further_columns, other_row_groups, other_encoding, as_arrow_holds_it, no_checksums,
)  # fmt: skip
"""After these the file says what it said, or is refused."""

OF_CONTENT: tuple[Mutation, ...] = (
    *OF_COLUMNS, other_rows, other_rows, no_values, no_values, no_values, other_values, other_values, other_values,
    other_metadata, other_metadata, another_end, another_end, another_end,
)  # fmt: skip
