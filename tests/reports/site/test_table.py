"""The table of a site: what counts, and since which release."""

import dataclasses
from pathlib import Path

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.reports.runs.fingerprint import release_of
from epcheck.reports.site.deviations import deviations_of
from epcheck.reports.site.page import Total, headline
from epcheck.reports.site.provider_release import ProviderRelease, provider_releases
from epcheck.reports.site.table import Cell, cells_of
from epcheck.reports.site.write import site_of
from epcheck.reports.store.store import Store, open_store
from tests.reports.stored_nights import keep
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, an_opinion


def a_release(release: str, day: int = 1, provider: str = "DmlExecutionProvider", adapter: str = "Radeon") -> Run:
    """A run of one release of a provider."""
    facts = {"execution_provider": provider, "adapter": adapter, "onnxruntime": release}
    return a_run(
        run_id=f"202501{day:02}-{provider[:3].lower()}-{release}-{adapter.lower()}",
        started=f"2025-01-{day:02}T03:04:05Z",
        candidates=("dml",),
        targets={"dml": facts},
    )


def a_declined_slice(dtype: str, sample: str) -> Record:
    return dataclasses.replace(
        a_slice(dtype, sample), status="unplaced", claimed=False, candidate=an_opinion("dml", status="unplaced")
    )


def opened(tmp_path: Path, *runs: tuple[Run, list[Record]]) -> Store:
    for run, records in runs:
        keep(tmp_path / "store", run, records)
    return open_store(tmp_path / "store")


def cells(store: Store) -> dict[tuple[str, str], Cell]:
    """(key of the provider release, dtype) -> cell."""
    releases = provider_releases(store.runs)
    return {(releases[c.provider_release].key, c.dtype): c for c in cells_of(store.runs, releases)}


def test_releases_of_a_provider_are_ordered_as_versions_and_named_for_addresses(tmp_path: Path) -> None:
    store = opened(tmp_path, *((a_release(name), [a_slice()]) for name in ("1.20.1", "1.9.0", "1.24.4")))
    releases = provider_releases(store.runs)
    assert [(r.key, r.name, r.ordinal, r.is_newest) for r in releases] == [
        ("dml-1.9.0", "Dml 1.9.0", 0, False),
        ("dml-1.20.1", "Dml 1.20.1", 1, False),
        ("dml-1.24.4", "Dml 1.24.4", 2, True),
    ]
    assert {r.line for r in releases} == {0}


def test_an_adapter_is_in_the_key_where_there_are_several(tmp_path: Path) -> None:
    store = opened(
        tmp_path,
        (a_release("1.24.4"), [a_slice()]),
        (a_release("1.24.4", adapter="Arc"), [a_slice()]),
        (a_release("1.20.1"), [a_slice()]),
    )
    assert [(r.key, r.line) for r in provider_releases(store.runs)] == [
        ("dml-1.24.4-arc", 0),
        ("dml-1.20.1", 1),
        ("dml-1.24.4-radeon", 1),
    ]


def test_the_newest_record_of_a_case_counts(tmp_path: Path) -> None:
    store = opened(
        tmp_path,
        (a_release("1.24.4", day=2), [a_slice("float32", "a")]),
        (a_release("1.24.4", day=1), [a_wrong_slice("float32", "a"), a_wrong_slice("float32", "b")]),
    )
    (release,) = provider_releases(store.runs)
    assert release.runs == (("20250101-dml-1.24.4-radeon", "dml"), ("20250102-dml-1.24.4-radeon", "dml"))
    cell = cells(store)["dml-1.24.4", "float32"]
    assert (cell.passes, cell.failures, cell.codes, cell.state) == (1, 1, "rf", "failure")


def test_a_cell_counts_right_wrong_expected_and_declined_and_knows_the_largest_error_of_what_is_right(
    tmp_path: Path,
) -> None:
    measured = a_slice("float16", "a", candidate=an_opinion("dml", accuracy=Accuracy(4, 2.5, 3.0, (2, 1, 1))))
    wrong = a_wrong_slice("float16", "b", reading="expected")
    store = opened(tmp_path, (a_release("1.24.4"), [measured, wrong, a_declined_slice("float16", "c")]))
    assert cells(store)["dml-1.24.4", "float16"] == Cell(
        provider_release=0, operator="Slice", since_version=13, dtype="float16", passes=1, failures=0, expected=1,
        declined=1, claimed=True, ulp=2.5, codes="red", since=None, since_oldest=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("standings", "state", "since", "oldest"),
    [
        ("rrr", "ok", "1.1", True),
        ("frr", "ok", "1.2", False),
        ("frf", "failure", "1.3", False),
        ("fff", "failure", "1.1", True),
        ("r.r", "ok", "1.1", True),
        ("f.r", "ok", "1.3", False),
        ("..r", "ok", None, False),
        ("ddd", "not-run", "1.1", True),
        ("ddr", "ok", "1.3", False),
    ],
)
def test_since_which_release_a_cell_stands_as_it_does(
    tmp_path: Path, standings: str, state: str, since: str | None, oldest: bool
) -> None:
    made = {"r": a_slice, "f": a_wrong_slice, "d": a_declined_slice}
    other = a_slice("int64", "of_another_dtype")
    runs = [
        (a_release(f"1.{number}"), [other, *([made[code]("float16", "a")] if code in made else [])])
        for number, code in enumerate(standings, 1)
    ]
    store = opened(tmp_path, *runs)
    releases = provider_releases(store.runs)
    cell = cells(store)["dml-1.3", "float16"]
    assert cell.state == state
    assert (None if cell.since is None else releases[cell.since].release) == since
    assert cell.since_oldest is oldest


def test_the_last_case_that_became_right_dates_the_cell(tmp_path: Path) -> None:
    store = opened(
        tmp_path,
        (a_release("1.1"), [a_slice("float16", "a"), a_wrong_slice("float16", "b")]),
        (a_release("1.2"), [a_slice("float16", "a"), a_slice("float16", "b")]),
        (a_release("1.3"), [a_slice("float16", sample) for sample in "abc"]),
    )
    assert cells(store)["dml-1.3", "float16"].since == 1


def test_releases_on_another_adapter_say_nothing_of_this_one(tmp_path: Path) -> None:
    store = opened(
        tmp_path,
        (a_release("1.1", adapter="Arc"), [a_wrong_slice("float16", "a")]),
        (a_release("1.2"), [a_slice("float16", "a")]),
    )
    assert cells(store)["dml-1.2", "float16"].since is None


def test_what_is_wrong_alike_on_two_providers_has_one_key(tmp_path: Path) -> None:
    records = [a_wrong_slice("float16", f"start_{n}_step_1", reason=f"dml: {n} elements differ") for n in range(7)]
    store = opened(
        tmp_path,
        (a_release("1.1"), records),
        (a_release("2.0", provider="WebGpuExecutionProvider"), records[:1]),
    )
    first, second = deviations_of(store.runs, provider_releases(store.runs))
    assert (first.cases, second.cases, first.sample) == (7, 1, "start_*_step_*")
    assert first.key == second.key
    assert len(first.case_ids) == 5


def test_a_damaged_file_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    store = opened(tmp_path, (a_release("1.1"), [a_slice()]), (a_release("1.2"), [a_slice()]))
    (tmp_path / "store" / "cut.parquet").write_bytes(b"PAR1")
    found = site_of(open_store(tmp_path / "store"))
    assert headline(found) == "1 provider in 2 releases on 1 adapter: 1 operator"
    assert (found.runs, len(found.problems)) == (2, 1)
    assert "cut.parquet" in found.problems[0]
    assert store.problems == ()


@pytest.mark.parametrize(
    ("total", "share", "text"),
    [
        (Total(1, 9999, 1, 0, 0), "99.9", "9999/10000"),
        (Total(1, 3, 0, 0, 5), "100.0", "3"),
        (Total(1, 0, 0, 0, 5), "0", ""),
    ],
)
def test_only_what_is_all_right_is_a_hundred_percent(total: Total, share: str, text: str) -> None:
    assert (total.share, total.text) == (share, text)


def test_a_name_of_a_provider_that_is_only_the_suffix_stays() -> None:
    release = ProviderRelease("x", "ExecutionProvider", "", "", 0, 0, True, "", {})
    assert release.name == "ExecutionProvider"


@pytest.mark.parametrize(
    ("facts", "release"),
    [
        ({"plugin": "onnxruntime-ep-webgpu 0.4.0", "plugin_library": "1.27.0", "onnxruntime": "1.31.1"}, "0.4.0"),
        ({"plugin": "provider.so", "plugin_library": "1.27.0", "onnxruntime": "1.31.1"}, "1.27.0"),
        ({"plugin": "provider.so", "plugin_library": "", "onnxruntime": "1.31.1"}, "1.31.1"),
        ({"DirectML.dll": "1.15.4.0"}, "1.15.4.0"),
        ({}, ""),
    ],
)
def test_the_release_of_a_plugin_is_its_own(facts: dict[str, str], release: str) -> None:
    assert release_of(facts) == release
