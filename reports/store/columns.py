"""The columns that a file of a store must have, as Parquet types. What Arrow makes of them, a dictionary or large
strings, is another way to hold the same values, and does not count."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from epcheck.reports.runs import parquet

OLDEST = 2
"""The oldest schema that is read."""

_PLAIN: Mapping[pa.DataType, tuple[str, tuple[str, ...]]] = {
    pa.string(): ("BYTE_ARRAY", ("UTF8",)),
    pa.int32(): ("INT32", ("NONE", "INT_32")),
    pa.int64(): ("INT64", ("NONE", "INT_64")),
    pa.float64(): ("DOUBLE", ("NONE",)),
    pa.bool_(): ("BOOLEAN", ("NONE",)),
}
"""A type of the schema -> its physical type, and what it may be annotated as (parquet.thrift: ConvertedType)."""

_ANNOTATIONS = ("NONE", "STRING", "INT")

MAY_LACK = frozenset(
    (
        "cause", "assignment", "create_s", "run_s", "baseline", "baseline_status", "max_ulp", "ulp_elements", "ulp_max",
        "ulp_sum", "ulp_counts", "excused_elements", "excused_ulp", "baseline_ulp_max", "baseline_ulp_sum",
        "baseline_ulp_counts", "record", "claimed",
    )
)  # fmt: skip
"""Columns in which a row may have no value."""


def columns_of(version: int) -> Mapping[str, str]:
    """The columns that a file of that schema has -> the name of each in the file."""
    columns = {name: name for name in parquet.SCHEMA.names if parquet.SINCE_VERSION.get(name, OLDEST) <= version}
    earlier = {name: before for name, (before, since) in parquet.EARLIER_NAMES.items() if version < since}
    return {**columns, **earlier}


MOST_KNOWN = 8

_known: list[tuple[int, list[str], pq.ParquetSchema]] = []
"""Version, names and types of columns in which there was no fault: almost all files of a store have the same."""


def fault_of_columns(metadata: pq.FileMetaData, version: int) -> str:
    """What is wrong with the columns of a file, in words that follow its name; empty for nothing. Further columns are
    left alone."""
    try:
        names = metadata.schema.to_arrow_schema().names
        if any((version, names) == known[:2] and metadata.schema.equals(known[2]) for known in _known):
            return ""
    except (UnicodeDecodeError, pa.ArrowException):  # of a type, maybe of a further column, that Arrow does not have
        return _fault(metadata, version)
    fault = _fault(metadata, version)
    if not fault and len(_known) < MOST_KNOWN:
        _known.append((version, names, metadata.schema))
    return fault


def _fault(metadata: pq.FileMetaData, version: int) -> str:
    found: dict[str, list[pq.ColumnSchema]] = {}
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        try:
            found.setdefault(_name(column).lower(), []).append(column)  # DuckDB does not tell `A` from `a`
        except UnicodeDecodeError:
            return "has a column whose name is not UTF-8"
    for column_name, name in columns_of(version).items():
        columns = found.get(name, [])
        if not any(_name(column) == name for column in columns):
            return f"lacks the column '{name}'"
        wanted = parquet.SCHEMA.field(column_name).type
        if not _is(columns[0], wanted):
            kind = ", ".join(filter(None, (columns[0].physical_type, columns[0].converted_type.replace("NONE", ""))))
            return f"has the column '{name}' of another type ({kind} in place of {wanted})"
        if len(columns) > 1:
            return f"has two columns '{name}'"
    return ""


def _name(column: pq.ColumnSchema) -> str:
    """Of the column that this one is, or is a part of."""
    return str(column.path if column.path == column.name else column.path.partition(".")[0])


def _is(column: pq.ColumnSchema, wanted: pa.DataType) -> bool:
    is_list = pa.types.is_list(wanted)
    physical, annotations = _PLAIN[wanted.value_type if is_list else wanted]
    if column.max_repetition_level != int(is_list) or (column.path == column.name) == is_list:
        return False
    annotation = (
        column.logical_type.type
    )  # which says more than the older kind: a time in nanoseconds, no values at all
    return column.physical_type == physical and column.converted_type in annotations and annotation in _ANNOTATIONS
