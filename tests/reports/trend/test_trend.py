"""What many nights say together: rates, breaks with what came with them, flakes, machines side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck import reports
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.generators import registry
from epcheck.generators.operator_index import group_of
from epcheck.reports.store.nights import Completeness
from epcheck.reports.store.run_file import ProblemKind
from epcheck.reports.store.store import open_store
from epcheck.reports.trend.page import write_html
from epcheck.reports.trend.sections import came_with, sections
from epcheck.reports.trend.trend import Event, Trend, trend
from tests.command_line import call, refused
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_crashed_topk, a_slice, a_wrong_slice

WHOLE, PARTIAL, NIGHT_NOT_RUN = Completeness.WHOLE, Completeness.PARTIAL, Completeness.NOT_RUN

GOOD = a_slice("float16", "negative_step_past_both_ends")
BAD = a_wrong_slice()
CASE = BAD.case_id


def family(key: str) -> str:
    return {"Slice": "slice", "TopK": "topk"}[key]


def trend_of(store: Path, since: str = "") -> Trend:
    return trend(open_store(store), family, since)


def nights(store: Path, states: str, run: Callable[[int], Run] = a_night, first: int = 1) -> None:
    """A night for each letter: `.` good, `x` failing, `~` flaky, `-` not run; another case always passes."""
    flaky = replace(BAD, status="flaky", candidate=replace(BAD.candidate, status="flaky"))
    records: dict[str, Record] = {".": GOOD, "x": BAD, "~": flaky}
    for day, state in enumerate(states, first):
        if state != "-":
            keep(store, run(day), [a_slice(), records[state]])


def with_driver(changes: dict[int, str], adapter: str = "Radeon") -> Callable[[int], Run]:
    """Nights of a machine whose driver is another one from certain days on."""

    def run(day: int) -> Run:
        driver = next(version for since, version in sorted(changes.items(), reverse=True) if since <= day)
        return a_night(day, adapter, driver_version=driver)

    return run


def summary(event: Event) -> tuple[bool, str, str, int, list[str], list[str]]:
    changed = [str(change) for change in event.changed]
    return event.broke, event.before[-2:], event.night[-2:], event.not_run, changed, [c.case_id for c in event.cases]


def test_a_break_is_told_with_the_driver_that_came_with_it(tmp_path: Path) -> None:
    nights(tmp_path / "store", "...xxx", with_driver({1: "31.0.1", 4: "31.0.2"}))
    (event,) = trend_of(tmp_path / "store").events
    assert summary(event) == (True, "03", "04", 0, ["driver: 31.0.1 → 31.0.2"], [CASE])
    (case,) = event.cases
    assert (case.operator, case.family, case.status, case.lasting) == ("Slice", "slice", "mismatch", True)
    assert (event.machine, event.run_id) == ("Radeon", "20250104-030405-radeon")


def test_a_break_with_which_nothing_came_says_so(tmp_path: Path) -> None:
    nights(tmp_path / "store", "..xx")
    (event,) = trend_of(tmp_path / "store").events
    assert summary(event) == (True, "02", "03", 0, [], [CASE])
    assert event.unknown == ("driver", "runtime")
    assert came_with(event) == "no recorded change in OS; driver and runtime unknown"
    assert came_with(replace(event, unknown=())) == "no recorded change in driver, runtime or OS"


def test_what_was_mended_is_told_and_the_break_is_no_longer_so(tmp_path: Path) -> None:
    nights(tmp_path / "store", "..xx..")
    mended, broke = trend_of(tmp_path / "store").events
    assert summary(mended)[:3] == (False, "04", "05")
    assert summary(broke)[:3] == (True, "02", "03")
    assert (mended.lasting, broke.lasting) == (1, 0)


def test_a_driver_that_came_while_the_machine_was_lost_is_named_with_the_nights_that_did_not_run(
    tmp_path: Path,
) -> None:
    nights(tmp_path / "store", "...--xx", with_driver({1: "31.0.1", 5: "31.0.2"}))
    (event,) = trend_of(tmp_path / "store").events
    assert summary(event) == (True, "03", "06", 2, ["driver: 31.0.1 → 31.0.2"], [CASE])


def test_cases_that_broke_together_are_one_event(tmp_path: Path) -> None:
    topk = a_crashed_topk()
    good = replace(topk, status="pass", reading="ok", candidate=replace(topk.candidate, status="pass"))
    for day in range(1, 5):
        keep(tmp_path / "store", a_night(day), [GOOD, good] if day < 3 else [BAD, topk])
    (event,) = trend_of(tmp_path / "store").events
    assert [(case.operator, case.status) for case in event.cases] == [("Slice", "mismatch"), ("TopK", "crash")]


def test_a_case_that_always_failed_broke_on_no_night(tmp_path: Path) -> None:
    nights(tmp_path / "store", "xxxx")
    assert trend_of(tmp_path / "store").events == ()


def test_an_expectation_does_not_mend_a_case(tmp_path: Path) -> None:
    for day in range(1, 5):
        keep(tmp_path / "store", a_night(day), [replace(BAD, reading="expected" if day > 2 else "failure")])
    assert trend_of(tmp_path / "store").events == ()


def test_a_case_that_came_with_a_new_suite_and_fails_broke_on_no_night(tmp_path: Path) -> None:
    for day in range(1, 5):
        keep(tmp_path / "store", a_night(day), [a_slice(), BAD] if day > 2 else [a_slice()])
    assert trend_of(tmp_path / "store").events == ()


def test_a_case_that_a_night_lacks_was_not_mended_in_it(tmp_path: Path) -> None:
    for day in range(1, 6):
        keep(tmp_path / "store", a_night(day), [a_slice()] if day == 3 else [a_slice(), BAD if day > 1 else GOOD])
    (event,) = trend_of(tmp_path / "store").events
    assert summary(event)[:3] == (True, "01", "02")


def test_flakes_come_from_repeats_and_from_history_and_are_no_breaks(tmp_path: Path) -> None:
    nights(tmp_path / "store", "..~..x.x...")
    found = trend_of(tmp_path / "store")
    (flake,) = found.flaky_cases
    assert found.events == ()
    assert (flake.case_id, flake.wavering, flake.flips, flake.failing, flake.nights) == (CASE, 1, 4, 3, 11)
    assert flake.last == "2025-01-08"


def test_a_lost_night_and_a_lost_machine_have_no_rate(tmp_path: Path) -> None:
    nights(tmp_path / "store", "..-..")
    nights(tmp_path / "store", "..", lambda day: a_night(day, "GeForce"))
    found = trend_of(tmp_path / "store")
    geforce, radeon = found.machines
    assert (geforce.name, radeon.name) == ("GeForce", "Radeon")
    assert [night.rate() for night in radeon.nights] == [1.0, 1.0, None, 1.0, 1.0]
    assert [(night.label[-2:], night.completeness) for night in geforce.nights] == [
        ("01", WHOLE), ("02", WHOLE), ("03", NIGHT_NOT_RUN), ("04", NIGHT_NOT_RUN), ("05", NIGHT_NOT_RUN),
    ]  # fmt: skip
    assert geforce.nights[-1].why == "there is no run of it"


def test_a_run_that_failed_is_not_run_and_one_that_ended_early_has_no_rate(tmp_path: Path) -> None:
    store = tmp_path / "store"
    nights(store, ".")
    keep(store, a_night(2).__class__(**{**vars(a_night(2)), "status": "failed: device lost"}), [], planned=2)
    keep(store, replace(a_night(3), status="interrupted"), [BAD], planned=2)
    (machine,) = trend_of(store).machines
    assert [(night.completeness, night.rate()) for night in machine.nights] == [
        (WHOLE, 1.0), (NIGHT_NOT_RUN, None), (PARTIAL, None),
    ]  # fmt: skip
    assert machine.nights[1].why == "nothing was recorded: the run failed: device lost"
    assert machine.nights[2].why == "1 of 2 planned records: the run was interrupted"


def test_a_run_that_never_reached_its_adapter_is_a_night_of_the_only_machine_it_can_be(tmp_path: Path) -> None:
    nights(tmp_path / "store", "..")
    keep(tmp_path / "store", replace(a_night(3), targets={}, status="failed: no adapter"), [], planned=2)
    (machine,) = trend_of(tmp_path / "store").machines
    assert [night.completeness for night in machine.nights] == [
        WHOLE,
        WHOLE,
        NIGHT_NOT_RUN,
    ]


def test_the_rate_is_of_what_passes_or_fails(tmp_path: Path) -> None:
    idle = a_slice(sample="not_claimed", status="unplaced", claimed=False)
    keep(tmp_path / "store", a_night(1), [a_slice(), BAD, a_slice(sample="other"), idle, a_crashed_topk()])
    ((night,),) = (machine.nights for machine in trend_of(tmp_path / "store").machines)
    assert (night.rate(), night.rate("slice"), night.rate("topk"), night.rate("gemm")) == (0.5, 2 / 3, 0.0, None)


def test_two_runs_of_one_day_are_two_nights(tmp_path: Path) -> None:
    for hour in (3, 4):
        run = replace(a_night(1), run_id=f"run-{hour}", started=f"2025-01-01T0{hour}:00:00+00:00")
        keep(tmp_path / "store", run, [a_slice()])
    (machine,) = trend_of(tmp_path / "store").machines
    assert [night.label for night in machine.nights] == ["2025-01-01", "2025-01-01 (2)"]


def test_two_releases_in_one_run_are_machines_of_their_own(tmp_path: Path) -> None:
    facts = a_night(1).targets["dml"]
    run = replace(a_night(1), candidates=("dml", "dml@1.20.1"), targets={"dml": facts, "dml@1.20.1": facts})
    other = replace(BAD, candidate=replace(BAD.candidate, target="dml@1.20.1"))
    keep(tmp_path / "store", run, [GOOD, other])
    found = trend_of(tmp_path / "store")
    assert [machine.name for machine in found.machines] == ["Radeon, as dml", "Radeon, as dml@1.20.1"]
    assert [machine.nights[0].rate() for machine in found.machines] == [1.0, 0.0]


def test_since_leaves_older_nights_out(tmp_path: Path) -> None:
    nights(tmp_path / "store", "..xx..")
    assert trend_of(tmp_path / "store", "2025-01-03").labels == tuple(f"2025-01-0{day}" for day in range(3, 7))


def test_truncated_files_are_named_and_their_nights_did_not_run(tmp_path: Path) -> None:
    nights(tmp_path / "store", "......")
    cut = tmp_path / "store" / f"{a_night(3).run_id}.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    found = trend_of(tmp_path / "store")
    assert [(problem.path, problem.kind) for problem in found.problems] == [(cut, ProblemKind.TRUNCATED)]
    assert found.machines[0].nights[2].completeness is NIGHT_NOT_RUN


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two machines, of which one breaks with a driver and loses a night, and a hostile name."""
    nights(tmp_path / "store", "...xxx", with_driver({1: "31.0.1", 4: "31.0.2<img onerror=alert(1)>"}))
    nights(tmp_path / "store", "..-.~.", lambda day: a_night(day, "</script>"))
    return tmp_path / "store"


def test_the_terminal_tells_all_of_it(store: Path) -> None:
    done = call("trend", "--store", str(store))
    assert done.code == 0
    for words in ("Machines", "driver: 31.0.1 → 31.0.2", "there is no run of it", "Flakiest cases",
                  "11 nights of 2 machines, 2025-01-01 to 2025-01-06."):  # fmt: skip
        assert words in done.out
    assert " 0 %" not in done.out.split("Pass rate by family")[0]


def test_markdown_and_json_say_the_same(store: Path, tmp_path: Path) -> None:
    call("trend", "--store", str(store), "--markdown", str(tmp_path / "t.md"), "--json", str(tmp_path / "t.json"))
    markdown = (tmp_path / "t.md").read_text("utf-8")
    assert "driver: 31.0.1 → 31.0.2&lt;img onerror=alert(1)&gt;" in markdown
    assert "<" not in markdown
    document = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert document["schema"] == 1
    (event,) = document["trend"]["events"]
    assert (event["night"], event["changed"][0]["part"], len(event["cases"])) == ("2025-01-04", "driver", 1)
    lost = document["trend"]["machines"][0]["nights"][2]
    assert (lost["ran"], lost["rate"]) == ("not run", None)


def test_the_page_holds_what_hostile_names_say_as_text(store: Path, tmp_path: Path) -> None:
    call("trend", "--store", str(store), "--html", str(tmp_path / "t.html"))
    page = (tmp_path / "t.html").read_text("utf-8")
    assert "<img" not in page
    assert "31.0.2&lt;img onerror=alert(1)&gt;" in page
    assert page.count("<figure") >= 3


def test_a_store_without_nights_and_a_day_that_is_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    assert "no nights recorded" in refused("trend", "--store", str(tmp_path / "store"))
    assert "not a date" in refused("trend", "--store", str(tmp_path / "store"), "--since", "yesterday")


def test_every_operator_of_the_suite_has_a_family() -> None:
    families = {group_of(key) for key in registry.all_operators()}
    assert {"batch normalization", "slice", "topk"} <= families
    assert len(families) < len(registry.all_operators()) / 2
    assert group_of("com.example::Gone") == "com.example::Gone"


def crashing_night(store: Path, count: int) -> list[str]:
    """Four nights, in the second of which `count` cases crash; their ids."""
    cases = [a_slice("float16", f"rank_{number}") for number in range(count)]
    crashed = [replace(case, status="crash", reading="failure", blame="candidate") for case in cases]
    for day in range(1, 5):
        keep(store, a_night(day), [a_slice(), *(crashed if day == 2 else cases)])
    return sorted(case.case_id for case in cases)


def test_a_crash_of_one_night_is_one_entry(tmp_path: Path) -> None:
    cases = crashing_night(tmp_path / "store", 6)
    found = trend_of(tmp_path / "store")
    (night,) = found.single_nights
    assert (night.night[-2:], night.target, night.run_id) == ("02", "dml", a_night(2).run_id)
    assert [case.case_id for case in night.cases] == cases
    assert {case.status for case in night.cases} == {"crash"}
    assert (found.flaky_cases, found.events) == ((), ())
    (section,) = (section for section in sections(found) if section.title == "One bad night")
    assert section.rows == ((night.night, "6", "crash 6", "Slice 6", night.machine),)


def test_a_few_cases_of_one_night_are_flaky_cases(tmp_path: Path) -> None:
    cases = crashing_night(tmp_path / "store", 4)
    found = trend_of(tmp_path / "store")
    assert found.single_nights == ()
    assert [case.case_id for case in found.flaky_cases] == cases


def test_the_page_links_each_case_to_the_report_of_its_night(tmp_path: Path) -> None:
    crashing_night(tmp_path / "store", 5)
    runs = tmp_path / "runs"
    reports.write_html(runs / a_night(2).run_id)
    page = write_html(trend_of(tmp_path / "store"), tmp_path / "trend.html", runs).read_text(encoding="utf-8")
    address = f"runs/{a_night(2).run_id}/report.html#case=Slice-13%2Ffloat16%2Frank_0%5Bruntime%5D&amp;target=dml"
    assert f'<a href="{address}"><code>Slice-13/float16/rank_0[runtime]</code></a> crash' in page
    assert page.count("report.html#case=") == 5


def test_a_store_whose_only_night_did_not_run_has_a_page(tmp_path: Path) -> None:
    keep(tmp_path / "store", replace(a_night(2), targets={}, status="failed: no adapter"), [], planned=2)
    page = write_html(trend_of(tmp_path / "store"), tmp_path / "trend.html", tmp_path).read_text(encoding="utf-8")
    assert "<p>No night has a rate.</p>" in page
    assert "no adapter" in page
