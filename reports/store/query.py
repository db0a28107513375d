"""SQL queries about the rows of stored runs, answered by DuckDB in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from epcheck.reports.runs import parquet
from epcheck.reports.runs.run_folder import StoreError
from epcheck.reports.store.columns import MAY_LACK, columns_of
from epcheck.reports.store.run_file import FileProblemError, ProblemKind, StoredRun, check_data, first_line
from epcheck.reports.store.store import Store


def connect(runs: Iterable[StoredRun]) -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, with the rows of these runs as the view `outcomes`. It loads no extension and uses no network.
    Columns that an older file does not have are null there.

    Raises StoreError when a file is gone. Queries raise duckdb.Error where a file is damaged; `query` names the file.
    """
    runs = tuple(runs)
    paths = ", ".join(_literal(run.path) for run in runs)
    schemas = {run.schema for run in runs} or {parquet.SCHEMA_VERSION}
    by_name = str(len(schemas) > 1).lower()  # it reads every footer, so only where it is needed
    database = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    source = f"read_parquet([{paths}], hive_partitioning = false, union_by_name = {by_name})" if paths else "nothing"
    columns = ", ".join(_select_column(name, schemas) for name in columns_of(max(schemas)))
    try:
        database.execute("SET enable_progress_bar = false")
        if not paths:
            database.register("nothing", parquet.SCHEMA.empty_table())
        database.execute(f"CREATE VIEW outcomes AS SELECT {columns} FROM {source}")
    except duckdb.Error as error:
        database.close()
        raise StoreError(f"cannot query the store ({first_line(error)}); see: epcheck store check") from None
    return database


def query(runs: Sequence[StoredRun], sql: str, **tables: pa.Table) -> pa.Table:
    """The answer to a query about the view `outcomes`, and about further tables by their names.

    Raises FileProblemError for a file that is damaged, and StoreError when the query itself is wrong.
    """
    for run in runs:
        check_data(run)
    try:
        answer = _answer(runs, sql, tables)
    except (duckdb.Error, StoreError) as error:
        for run in runs:
            _check_alone(run, sql, tables)
        raise _query_failed(error) from None
    for name in answer.column_names:
        if name in parquet.SCHEMA.names and name not in MAY_LACK and answer[name].null_count:
            _refuse_rows_without(name, runs)
    return answer


def query_store(store: Store, sql: str) -> tuple[pa.Table, Store]:
    """`query` about all runs, and the store without those that turn out to be damaged, which become problems."""
    while True:
        try:
            return query(store.runs, sql), store
        except FileProblemError as error:
            store = store.without(error.problem)


def check_rows(run: StoredRun) -> None:
    """Read every value of a file. Raises FileProblemError when one cannot be read."""
    try:
        _answer([run], "SELECT count(hash(outcomes)) FROM outcomes", {})
    except (duckdb.Error, StoreError) as error:
        raise FileProblemError(run.path, ProblemKind.DAMAGED, f"is damaged ({first_line(error)})") from None


def _answer(runs: Iterable[StoredRun], sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    with connect(runs) as database:
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(sql).to_arrow_table()


def _check_alone(run: StoredRun, sql: str, tables: Mapping[str, pa.Table]) -> None:
    """Run on one file a query that failed on all together.

    Raises FileProblemError when the file is damaged, StoreError when it is not and the query fails all the same: then
    the query is wrong.
    """
    try:
        _answer([run], sql, tables)
    except (duckdb.Error, StoreError) as error:
        check_rows(run)
        raise _query_failed(error) from None


def _select_column(name: str, schemas: Iterable[int]) -> str:
    """The SQL of a column of the view, under whichever names the files of these schemas have it."""
    stored = {columns_of(schema).get(name, name) for schema in schemas}
    return name if stored == {name} else f"coalesce({', '.join(sorted(stored))}) AS {name}"


def _refuse_rows_without(name: str, runs: Iterable[StoredRun]) -> None:
    """Raise FileProblemError for the first file with a row that lacks the value of a column."""
    for run in runs:
        if _answer([run], f"SELECT 1 FROM outcomes WHERE {name} IS NULL LIMIT 1", {}).num_rows:
            raise FileProblemError(run.path, ProblemKind.DAMAGED, f"has rows without a value in the column '{name}'")


def _query_failed(error: Exception) -> StoreError:
    return StoreError(f"cannot query the store ({first_line(error)})")


def _literal(path: Path) -> str:
    """The path in SQL. Brackets, stars and question marks would be a pattern of several files."""
    exact = re.sub(r"([\[*?])", r"[\1]", str(path))
    return "'" + exact.replace("'", "''") + "'"
