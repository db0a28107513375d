"""A run beside earlier ones: each case against the newest run that has it, of the same target on the same adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck import api
from epcheck.conformance.records.record import Record
from epcheck.reports import StoreError, read_records, write_all, write_outcomes
from epcheck.reports.earlier.comparison import compare_with_earlier
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.since import BROKE, FIRST_SEEN, REPAIRED, STILL, Since
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_slice, a_wrong_slice, stored

SAMPLES = ("steady", "broken", "fixed_since", "always_wrong")


def right(sample: str) -> Record:
    return a_slice("float16", sample)


def wrong(sample: str, **changes: str) -> Record:
    return a_wrong_slice("float16", sample, **changes)


def a_run_of(root: Path, day: int, records: Sequence[Record], **facts: str) -> Path:
    """A run's folder under `root`, with its Parquet file."""
    run = replace(a_night(day, **facts), planned=len(records))
    folder = stored(root / run.run_id, records, run)
    write_outcomes(folder)
    return folder


def since(folder: Path, store: Path | None = None) -> tuple[Since, ...]:
    comparison = compare_with_earlier(folder, store)
    causes = find_causes_of_run(folder).of_case
    for record in read_records(folder):
        comparison.add(record, causes.get((record.candidate.target, record.case_id)))
    return comparison.result()


def by_sample(found: Since) -> dict[str, str]:
    return {case_id.split("/")[2].partition("[")[0]: what for case_id, what in found.became.items()}


BEFORE = [right("steady"), right("broken"), wrong("fixed_since"), wrong("always_wrong")]
NOW = [right("steady"), wrong("broken"), right("fixed_since"), wrong("always_wrong"), wrong("written_today")]
BECAME = {"broken": BROKE, "fixed_since": REPAIRED, "always_wrong": STILL, "written_today": FIRST_SEEN}


def test_each_case_is_compared_with_the_run_before(tmp_path: Path) -> None:
    a_run_of(tmp_path, 1, BEFORE, driver_version="535")
    (found,) = since(a_run_of(tmp_path, 2, NOW, driver_version="540"))
    assert by_sample(found) == BECAME
    assert found.changed == "Changed: driver: 535 → 540; runtime unknown."
    assert found.sentence == (
        "since 2025-01-01 03:04 UTC: 1 broke, 1 first seen, 1 repaired, 1 failed before; "
        "causes: 1 still there. Changed: driver: 535 → 540; runtime unknown."
    )


def test_a_case_that_the_last_run_lacks_is_compared_with_the_one_that_has_it(tmp_path: Path) -> None:
    a_run_of(tmp_path, 1, BEFORE)
    a_run_of(tmp_path, 2, [wrong("always_wrong")])
    (found,) = since(a_run_of(tmp_path, 3, NOW))
    assert by_sample(found) == BECAME
    assert [each.started[:10] for each in found.runs] == ["2025-01-02", "2025-01-01"]
    assert found.history[wrong("broken").case_id] == ("", "pass")
    assert found.history[wrong("always_wrong").case_id] == ("mismatch", "mismatch")
    assert right("steady").case_id not in found.history


def test_a_deviation_that_was_expected_before_did_not_break(tmp_path: Path) -> None:
    a_run_of(tmp_path, 1, [wrong("a", reading="expected"), right("b")])
    (found,) = since(a_run_of(tmp_path, 2, [wrong("a"), wrong("b", reading="expected")]))
    assert by_sample(found) == {"a": STILL}


def test_a_case_that_is_not_run_any_more_is_not_repaired(tmp_path: Path) -> None:
    a_run_of(tmp_path, 1, [wrong("a")])
    (found,) = since(a_run_of(tmp_path, 2, [a_slice("float16", "a", status="unplaced")]))
    assert by_sample(found) == {}
    assert found.sentence == "since 2025-01-01 03:04 UTC: nothing broke. Driver and runtime unknown."


@pytest.mark.parametrize("other", ["another adapter", "other cases", "a later run", "an unreadable file"])
def test_what_cannot_be_compared_is_left_out(tmp_path: Path, other: str) -> None:
    match other:
        case "another adapter":
            a_run_of(tmp_path, 1, BEFORE, adapter="GeForce")
        case "other cases":
            a_run_of(tmp_path, 1, [right("of_yesterday")])
        case "a later run":
            a_run_of(tmp_path, 3, BEFORE)
        case _:
            (a_run_of(tmp_path, 1, BEFORE) / "outcomes.parquet").write_bytes(b"PAR1 no more")
    assert since(a_run_of(tmp_path, 2, NOW)) == ()


def test_a_file_whose_rows_are_damaged_is_passed_over(tmp_path: Path) -> None:
    a_run_of(tmp_path, 1, BEFORE)
    path = a_run_of(tmp_path, 2, BEFORE) / "outcomes.parquet"
    data = bytearray(path.read_bytes())
    data[40] ^= 0xFF
    path.write_bytes(data)
    (found,) = since(a_run_of(tmp_path, 3, NOW))
    assert [each.started[:10] for each in found.runs] == ["2025-01-01"]
    assert by_sample(found) == BECAME


def test_a_store_is_asked_in_place_of_the_runs_beside(tmp_path: Path) -> None:
    a_run_of(tmp_path, 2, NOW)
    store = tmp_path / "elsewhere" / "store"
    store.parent.mkdir()
    keep(store, a_night(1), BEFORE)
    folder = a_run_of(tmp_path, 3, NOW)
    (of_store,), (beside,) = since(folder, store), since(folder)
    assert by_sample(of_store) == BECAME
    assert beside.counts == {STILL: 3}
    with pytest.raises(StoreError, match="no store; create one"):
        since(folder, tmp_path / "nowhere")


def test_the_call_of_a_run_and_its_reports_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = api.RunOptions(("cpu",), "none", ("Relu",), reference=False, limit=2)
    assert api.run(options).since == ()
    (found,) = api.run(options).since
    assert (found.target, dict(found.became), len(found.runs)) == ("cpu", {}, 1)


def test_reports_tell_it_even_where_they_are_made_again(tmp_path: Path) -> None:
    a_run_of(tmp_path, 1, BEFORE)
    folder = a_run_of(tmp_path, 2, NOW)
    reported = write_all(folder, comparison=compare_with_earlier(folder))
    assert by_sample(reported.since[0]) == BECAME
    assert write_all(folder).since == ()
