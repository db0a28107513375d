"""`epcheck expect`: a run's failures as expectations, reviewed as a diff."""

from __future__ import annotations

from pathlib import Path

import pytest

from epcheck.conformance.targets import expectation_file
from epcheck.conformance.targets.expectation import Expectation, ExpectationError, is_case_id
from epcheck.conformance.targets.expectation_file import Found, Tolerance
from epcheck.generators import suite
from tests.command_line import call, refused
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, stored

FILE = "expectations.toml"
EXISTING = '# Why we keep this file.\n\n[[expect]]\ncase = "TopK-*"\nstatus = "crash"\nreason = "old"\n'
IDS = [case.id for case in suite.cases(["Transpose"])]
WRONG = [Found(case_id, "mismatch") for case_id in IDS if case_id.startswith("Transpose-13/float16/")]


def written(existing: str = "", failures: list[Found] = WRONG, reason: str = "ticket 1", link: str = "") -> str:
    taken = {found.case_id for found in failures}
    others = [i for i in IDS if i not in taken]
    return expectation_file.baseline(existing, FILE, failures, others, Tolerance(reason, link)).text


def test_what_is_written_covers_the_failures_and_nothing_else() -> None:
    assert written(link="https://example.test/1") == (
        '[[expect]]\ncase = "Transpose-13/float16/*[runtime]"\nstatus = "mismatch"\nreason = "ticket 1"\n'
        'link = "https://example.test/1"\n'
    )


def test_a_case_of_the_suite_that_did_not_run_keeps_a_glob_from_being_written() -> None:
    some = WRONG[::2]
    text = expectation_file.baseline("", FILE, some, [], Tolerance("ticket 1")).text
    known = expectation_file.parse(text, FILE)
    covered = {i for i in IDS if any(expectation_file.is_expected(Found(i, "mismatch"), [found]) for found in known)}
    assert covered == {found.case_id for found in some}


def test_what_stands_in_the_file_stays_as_it_is() -> None:
    text = written(EXISTING)
    assert text.startswith(EXISTING + "\n[[expect]]\n")
    shown = expectation_file.diff(EXISTING, text, FILE)
    assert [line for line in shown.splitlines() if line.startswith("-")] == [f"--- {FILE}"]
    assert '+case = "Transpose-13/float16/*[runtime]"' in shown.splitlines()


def test_failures_that_are_expected_already_are_not_written_again() -> None:
    text = written(EXISTING)
    again = expectation_file.baseline(text, FILE, WRONG, [], Tolerance("ticket 1"))
    assert (again.text, again.added, again.covered) == (text, 0, len(WRONG))
    assert expectation_file.diff(text, again.text, FILE) == ""


def test_each_operator_and_status_is_an_entry() -> None:
    failures = [Found("A-1/x/a[r]", "crash"), Found("A-1/x/b[r]", "mismatch"), Found("B-1/x/a[r]", "mismatch")]
    known = expectation_file.parse(expectation_file.baseline("", FILE, failures, [], Tolerance("known")).text, FILE)
    assert known == tuple(Expectation(found.case_id, found.status, "known") for found in failures)


def test_an_id_is_not_taken_for_a_part_of_another_operators() -> None:
    """`Gelu-1/…` without a wildcard is looked for anywhere in an id, and so found in `com.microsoft::Gelu-1/…`."""
    failures = [Found(f"Gelu-1/x/{name}[r]", "mismatch") for name in ("a", "b")]
    text = expectation_file.baseline(
        "", FILE, failures, [f"com.microsoft::{found.case_id}" for found in failures], Tolerance("known")
    ).text
    assert expectation_file.parse(text, FILE)[0].case.startswith("Gelu-")
    assert "*" in text


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_mandatory(reason: str) -> None:
    with pytest.raises(ExpectationError, match="needs a reason"):
        written(reason=reason)


def test_words_of_strangers_stay_words() -> None:
    reason = 'a "quote"\\ \x7f\n[[expect]]\ncase = "*"'
    (found,) = expectation_file.parse(written(reason=reason), FILE)
    assert (found.case, found.reason) == ("Transpose-13/float16/*[runtime]", reason)


def test_a_file_that_is_not_valid_is_refused() -> None:
    with pytest.raises(ExpectationError, match="is not valid TOML"):
        written("[[expect")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    records = [a_wrong_slice(sample="far_1"), a_wrong_slice(sample="far_2"), a_slice(sample="rank_1")]
    return stored(tmp_path / "run", records, a_run(3))


def test_the_command_shows_the_diff_and_writes_only_when_it_is_told_to(run: Path, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(EXISTING, encoding="utf-8")
    asked = ("expect", "--from", str(run), "--reason", "ticket 7", "--file", str(file))
    shown = call(*asked)
    assert shown.code == 0
    assert '+case = "Slice-13/float16/far_*[runtime]"' in shown.out
    assert shown.err == f"{file}: 2 failures are expected with it (dry run; write it with --write)\n"
    assert file.read_text(encoding="utf-8") == EXISTING
    assert call(*asked, "--write").out == shown.out
    assert [found.case for found in expectation_file.load(file)] == ["TopK-*", "Slice-13/float16/far_*[runtime]"]
    assert call(*asked).err == f"{file}: nothing to add: 2 failures are already expected\n"


def test_only_the_chosen_failures_are_written(run: Path, tmp_path: Path) -> None:
    shown = call("expect", "--from", str(run), "--reason", "x", "--file", str(tmp_path / FILE), "-k", "far_2")
    assert '+case = "Slice-13/float16/far_2[runtime]"' in shown.out


def test_what_the_command_cannot_do_is_one_sentence(run: Path, tmp_path: Path) -> None:
    assert "needs a reason" in refused("expect", "--from", str(run), "--reason", " ", "--file", str(tmp_path / FILE))
    assert "is not a run folder" in refused("expect", "--from", str(tmp_path), "--reason", "x")
    assert "has no target 'cpu'" in refused("expect", "--from", str(run), "--reason", "x", "--target", "cpu")


FACTS = {"adapter": "llvmpipe (LLVM 19.1.7, 256 bits)", "driver_version": "Mesa 25.0.7", "onnxruntime": "1.24.4"}


@pytest.fixture
def run_on_mesa(tmp_path: Path) -> Path:
    records = [a_wrong_slice(sample="far_1"), a_wrong_slice(sample="far_2"), a_slice(sample="rank_1")]
    return stored(tmp_path / "on_mesa", records, a_run(3, targets={"dml": FACTS, "cpu": {}}))


def test_entries_apply_where_the_chosen_facts_are_as_in_the_run(run_on_mesa: Path, tmp_path: Path) -> None:
    file = tmp_path / FILE
    asked = ("expect", "--from", str(run_on_mesa), "--reason", "ticket 8", "--file", str(file))
    done = call(*asked, "--when", "adapter", "--when", "driver", "--write")
    assert done.code == 0
    assert file.read_text(encoding="utf-8") == (
        '[[expect]]\ncase = "Slice-13/float16/far_*[runtime]"\nstatus = "mismatch"\n'
        'when = { adapter = "llvmpipe*", driver = "25.0.7" }\nreason = "ticket 8"\n'
    )
    assert call(*asked).err == f"{file}: nothing to add: 2 failures are already expected\n"


def test_an_entry_for_other_machines_covers_nothing(run_on_mesa: Path, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(
        '[[expect]]\ncase = "Slice-*"\nstatus = "mismatch"\nreason = "known"\nwhen = { driver = ">=26" }\n',
        encoding="utf-8",
    )
    asked = ("expect", "--from", str(run_on_mesa), "--reason", "ticket 8", "--file", str(file))
    assert call(*asked).err == f"{file}: 2 failures are expected with it (dry run; write it with --write)\n"


def test_a_fact_that_the_run_does_not_have_is_one_sentence(run_on_mesa: Path, tmp_path: Path) -> None:
    asked = ("expect", "--from", str(run_on_mesa), "--reason", "x", "--file", str(tmp_path / FILE), "--when")
    assert "the run reports no vendor_id of its target; leave out --when vendor" in refused(*asked, "vendor")
    assert "'when' cannot name 'gpu'; it may name adapter, vendor, driver" in refused(*asked, "gpu")


@pytest.mark.parametrize("case_id", ["", "-", "x", "Slice", "Slice-13", "-13/float16/a[r]", "Slice-13/*/*[runtime]"])
def test_an_id_that_is_none_is_refused_and_not_looked_for_in_the_suite(
    tmp_path: Path, case_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its glob would have covered other cases: of `Slice` it was `Slice*`."""
    monkeypatch.setattr(suite, "cases", lambda *_: pytest.fail("the suite is listed"))
    folder = stored(tmp_path / "run", [a_wrong_slice(case_id=case_id)])
    sentence = refused("expect", "--from", str(folder), "--reason", "x", "--file", str(tmp_path / FILE))
    why = "is not a case id, and would cover other cases as a glob; choose cases with -k"
    assert sentence == f"'{case_id}' {why}"


def test_an_operator_that_the_suite_does_not_have_is_answered_from_the_run_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite, "cases", lambda *_: pytest.fail("the suite is listed"))
    text = written(failures=[Found("e-13/float16/a[runtime]", "mismatch")])  # `Slice-13/float16/a[runtime]` ends so
    assert text.startswith('[[expect]]\ncase = "e-13/float16/a[runtime]*"\n')


def test_every_id_of_some_operators_is_one() -> None:
    ids = [case.id for case in suite.cases(["Slice", "Transpose", "Cast", "com.microsoft::Gelu"])]
    assert [case_id for case_id in ids if not is_case_id(case_id)] == []


@pytest.mark.slow
def test_a_cause_with_a_condition_becomes_an_entry_with_that_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend of `epcheck demo` is wrong for negative steps; the next run with the entry conforms."""
    monkeypatch.chdir(tmp_path)
    run = ("run", "--target", "python:epcheck.api.machine.demo_provider:provider", "--op", "Slice", "--dtype", "int32")
    assert call(*run).code == 1
    (folder,) = (tmp_path / "epcheck-runs").iterdir()
    options = ("--from", str(folder), "--reason", "a ticket", "--conditions", "--write")
    assert call("expect", *options).code == 0
    text = (tmp_path / "expectations.toml").read_text(encoding="utf-8")
    assert 'case = "Slice-*"' in text
    assert 'where = "a value of steps < 0' in text
    assert call(*run, "--expect", "expectations.toml", "--strict").code == 0


def test_a_run_in_a_store_has_no_facts_for_conditions(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"")
    sentence = refused("expect", "--from", str(file), "--reason", "a ticket", "--conditions")
    assert sentence.endswith("a run in a store keeps no facts for --conditions; name the folder of the run")
