"""A run from Python: what it returns, what it reports while it works, and what it raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck import api
from epcheck.api import RunOptions
from epcheck.conformance.records.record import Record
from epcheck.conformance.targets.expectation import ExpectationError
from epcheck.conformance.targets.target import TargetError
from epcheck.generators.suite import SelectionError
from epcheck.reports import StoreError


@pytest.fixture
def options(tmp_path: Path) -> RunOptions:
    return RunOptions(("cpu",), "none", ("Slice",), patterns=("rank_",), limit=3, reference=False, root=tmp_path)


class Reported:
    """Keeps what a call reports."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.planned: list[tuple[int, int]] = []
        self.readings: list[str] = []

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    @contextmanager
    def recording(self, planned: int, done: int) -> Iterator[Callable[[str], None]]:
        self.planned.append((planned, done))
        yield self.readings.append

    def report_failure(self, record: Record) -> None:
        self.sentences.append(record.case_id)

    @contextmanager
    def installing(self) -> Iterator[None]:
        yield

    @contextmanager
    def working(self) -> Iterator[Callable[[str], None]]:
        yield self.sentences.append


def test_a_run_returns_its_folder_and_whether_the_candidates_conform(
    options: RunOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    result = api.run(options)
    assert (result.complete, result.conforms, result.run.status) == (True, True, "complete")
    assert [record.status for record in result.records()] == ["pass"] * 3
    assert (result.folder / "report.html").is_file()
    assert capsys.readouterr() == ("", "")


def test_what_a_run_does_is_reported(options: RunOptions) -> None:
    progress: api.Progress = Reported()
    api.run(replace(options, shard=api.Shard(1, 3)), progress=progress)
    assert isinstance(progress, Reported)
    assert progress.sentences == ["Shard 1/3 of the selection: 1 of 3 cases"]
    assert (progress.planned, progress.readings) == ([(1, 0)], ["ok"])


@pytest.mark.slow
def test_a_run_is_resumed_with_its_own_selection(options: RunOptions) -> None:
    first = api.run(options)
    (first.folder / "journal.jsonl").write_bytes(b"")
    progress = Reported()
    resumed = api.run(RunOptions(resume="latest", root=options.root), progress=progress)
    assert (resumed.folder, progress.planned, len(progress.readings)) == (first.folder, [(3, 0)], 3)
    assert api.run(RunOptions(resume=first.folder), progress=progress).folder == first.folder
    assert progress.planned[-1] == (3, 3)


@pytest.mark.slow
def test_an_expectation_that_no_longer_fails_counts_where_the_run_is_strict(
    options: RunOptions, tmp_path: Path
) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[expect]]\ncase = "Slice-*"\nstatus = "crash"\nreason = "it did once"\n')
    options = replace(options, expect=(known,))
    assert [api.run(replace(options, strict=strict)).conforms for strict in (False, True)] == [True, False]
    with known.open("a") as file:
        file.write('when = { adapter = "*" }\n')
    assert api.run(replace(options, strict=True)).conforms


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"operators": ("Slize",)}, SelectionError),
        ({"targets": ("gpu",)}, TargetError),
        ({"expect": (Path("nowhere.toml"),)}, ExpectationError),
        ({"resume": "nowhere"}, StoreError),
        ({"balance": Path("nowhere")}, api.EpcheckError),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_run_is_an_exception(
    options: RunOptions, changes: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        api.run(replace(options, **changes))  # type: ignore[arg-type]
    assert [path for path in options.root.iterdir() if path.is_dir()] == []


def test_workers_that_are_kept_serve_the_next_run(options: RunOptions) -> None:
    workers = api.IdleWorkers(keep=2)
    try:
        results = [api.run(options, workers=workers) for _ in range(2)]
    finally:
        workers.close()
    assert all(result.conforms for result in results)
