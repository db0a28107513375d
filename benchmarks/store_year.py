"""A store of a year: 365 nights of 20,000 cases on 4 machines; its size, and how long the commands take that ask it.

    epcheck run --target cpu --baseline none           # or any run: the nights are made of its outcomes
    python benchmarks/store_year.py epcheck-runs/20261121-090000-1a2b

The rows are those of the run, evenly thinned or repeated to the number of cases. Each machine has 40 different nights,
which come round: times differ, and so do the times within the records of what fails; flaky cases fail in 3 nights of
10; after 20 nights a new driver breaks some cases; one night in a hundred is lost, one ended early. Files are written
as by `epcheck run`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from epcheck import reports
from epcheck.conformance.records.run import Run
from epcheck.reports.runs import parquet
from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import read_file

FLAKY, BROKEN = 40, 25
"""Cases of a machine that fail in 3 nights of 10; cases that each new driver breaks."""

DIFFERENT, DRIVER_NIGHTS = 40, 20
"""Nights of a machine that are different; nights for which a driver stays."""

_TIME = re.compile(r'"(?:create|run)_s":[0-9.e-]+')


@dataclass(frozen=True)
class Year:
    """What is made."""

    nights: int
    machines: int
    cases: int
    like: Path
    store: Path


def main() -> None:
    """Make the store, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder or Parquet file of a run, of whose outcomes the nights are made")
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3, help="of each command; the median counts")
    parser.add_argument("--store", type=Path, help="keep the store in this folder; measure it if it is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        store = options.store or Path(temporary) / "store"
        if not store.exists():
            store.mkdir(parents=True)
            like = options.run
            if like.is_dir():
                like = reports.write_outcomes(options.run, Path(temporary) / "like.parquet")
            started = time.perf_counter()
            _make(Year(options.nights, options.machines, options.cases, like, store), options.jobs)
            print(f"made in {time.perf_counter() - started:.0f} s")
        _measure(store, options.repeats)


def _make(year: Year, jobs: int) -> None:
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        list(pool.map(_machine, [year] * year.machines, range(year.machines)))


def _machine(year: Year, number: int) -> None:
    """Write every night of one machine."""
    draw = np.random.default_rng(number)
    run = read_file(year.like).run
    (target,) = run.candidates
    different = list(_different(year, draw))
    for night in range(year.nights):
        outcomes, counted = different[night % len(different)]
        if draw.random() < 0.01:
            continue
        if ended := draw.random() < 0.01:
            outcomes = outcomes[: year.cases // 2]
            counted = parquet.count(outcomes)
        described = _described(run, target, number, night, year.cases, ended)
        ids = pa.array([described.run_id]).take(pa.array(np.zeros(outcomes.num_rows, np.int8)))
        with (year.store / f"{described.run_id}.parquet").open("wb") as file:
            parquet.write_sorted(outcomes.set_column(0, "run_id", ids), counted, described, file)


def _different(year: Year, draw: np.random.Generator) -> Iterator[tuple[pa.Table, dict[str, parquet.Counted]]]:
    """The rows of the nights that are different, sorted and counted."""
    base = _base(year)
    passing = np.flatnonzero(np.array(base["status"].to_pylist()) == "pass")
    flaky = draw.choice(passing, FLAKY, replace=False)
    broken = passing[:0]
    example = next(filter(None, base["record"].to_pylist()))
    records = _Records([None if text is None else _TIME.split(text) for text in base["record"].to_pylist()])
    for night in range(min(DIFFERENT, year.nights)):
        if night % DRIVER_NIGHTS == 0:
            broken = draw.choice(passing, BROKEN, replace=False)
        wrong = np.concatenate([flaky[draw.random(FLAKY) < 0.3], broken])
        outcomes = _night(base, records, wrong, example, draw)
        yield outcomes.sort_by([("failing", "descending"), ("case_id", "ascending")]), parquet.count(outcomes)


def _base(year: Year) -> pa.Table:
    """The rows of the run, as many as wanted, with ids of their own; the order is that of the ids."""
    stored = read_file(year.like)
    rows = query([stored], "SELECT * FROM outcomes ORDER BY case_id").cast(parquet.SCHEMA)
    chosen = np.linspace(0, rows.num_rows, year.cases, endpoint=False).astype(int)
    taken = rows.take(pa.array(chosen))
    ids = [f"{case_id}#{n}" if chosen[n] == chosen[n - 1] else case_id for n, case_id in
           enumerate(taken["case_id"].to_pylist())]  # fmt: skip
    return taken.set_column(taken.schema.get_field_index("case_id"), "case_id", pa.array(ids))


class _Records:
    """The records of what is not `ok`, with times that can be drawn anew."""

    def __init__(self, parts: list[list[str] | None]) -> None:
        self._parts = parts

    def again(self, draw: np.random.Generator) -> list[str | None]:
        times = iter(draw.lognormal(-5, 1, 8 * len(self._parts)).tolist())
        return [
            None if parts is None else "".join(p for part in parts[:-1] for p in (part, f'"run_s":{next(times)}'))
            + parts[-1]
            for parts in self._parts
        ]  # fmt: skip


def _night(base: pa.Table, records: _Records, wrong: np.ndarray, example: str, draw: np.random.Generator) -> pa.Table:
    """The rows of one night, in which the cases `wrong` fail besides those that always do."""
    columns = {name: base[name] for name in base.column_names}
    for name in ("create_s", "run_s"):
        seconds = base[name].to_numpy() * draw.lognormal(0, 0.2, base.num_rows)
        magnitude = 10.0 ** (np.floor(np.log10(seconds)) - 2)
        columns[name] = pa.array(np.round(seconds / magnitude) * magnitude, from_pandas=True)
    texts = {name: base[name].to_pylist() for name in ("status", "reading", "blame", "reason")}
    failing = base["failing"].to_pylist()
    texts = records.again(draw)
    for row in wrong.tolist():
        texts["status"][row], texts["reading"][row], texts["blame"][row] = "mismatch", "failure", "candidate"
        texts["reason"][row] = f"{draw.integers(1, 64)} of 64 elements are wrong"
        failing[row], texts[row] = True, example
    columns |= {name: pa.array(values) for name, values in texts.items()}
    columns |= {"failing": pa.array(failing), "record": pa.array(texts, pa.string())}
    return pa.table(columns, schema=parquet.SCHEMA)


def _described(run: Run, target: str, machine: int, night: int, cases: int, ended: bool) -> Run:
    started = datetime(2025, 1, 1, 3, machine, tzinfo=UTC) + timedelta(days=night)
    facts = dict(run.targets[target])
    facts |= {"adapter": f"Adapter {machine}", "driver_version": f"31.0.{night // DRIVER_NIGHTS}"}
    return dataclasses.replace(
        run,
        run_id=f"{started:%Y%m%d-%H%M%S}-{machine:04x}",
        started=started.isoformat(),
        targets={target: facts},
        planned=cases,
        status="interrupted" if ended else "complete",
    )


def _measure(store: Path, repeats: int) -> None:
    files = list(store.iterdir())
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files):,} files, {size / 2**30:.2f} GiB, {size / len(files) / 1024:.0f} KiB a file")
    for words in (["trend"], ["store", "list"], ["store", "check"]):
        times = [_seconds([*words, "--store", str(store)]) for _ in range(repeats)]
        print(f"epcheck {' '.join(words)}: {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})")


def _seconds(words: list[str]) -> float:
    """The whole command, from the start of its process to its end."""
    started = time.perf_counter()
    command = [sys.executable, "-c", "from epcheck.cli.main import main; main()", *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"epcheck {' '.join(words)} ended with {done.returncode}")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
