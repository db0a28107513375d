"""Certificates: what they say of a provider, the levels, and folders that somebody has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from epcheck import api
from epcheck.api.option import OptionError
from epcheck.conformance.profile import mustpass
from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.contract import BROKEN, Contract, Kernel, Mustpass, Rule
from epcheck.reports import StoreError
from epcheck.reports.certificate import certificate as certificates
from epcheck.reports.certificate import folder as folders
from epcheck.reports.certificate.certificate import Certificate, make_certificate
from epcheck.reports.checksum import line_with_checksum
from tests.command_line import call, refused

SUITE = "0" * 64


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> folders.Checked:
    """The certificate of the CPU provider, of two operators."""
    root = tmp_path_factory.mktemp("certificates")
    options = api.CertifyOptions("cpu", operators=("MatMul", "Softmax"), out=root / "cpu", root=root / "runs", jobs=1)
    return api.certify(options)


@pytest.fixture
def copied(made: folders.Checked, tmp_path: Path) -> Path:
    """Its folder, to be changed."""
    return Path(shutil.copytree(made.folder, tmp_path / "stranger"))


def sign(folder: Path) -> None:
    """Write the digests of the files as they are now, as a forger does."""
    path = folder / folders.MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for name in folders.FILES:
        content = (folder / name).read_bytes()
        manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(json.dumps(manifest), encoding="utf-8")


def check(folder: Path, lists: Sequence[Mustpass] = ()) -> folders.Checked:
    return folders.check_certificate(
        folder, lists or mustpass.load_mustpass(), version("epcheck"), mustpass.digest_suite()
    )


def test_a_certificate_says_what_was_run_and_observed(made: folders.Checked) -> None:
    certificate = made.certificate
    assert (certificate.target, certificate.provider) == ("cpu", "CPUExecutionProvider")
    assert certificate.values.failing == certificate.values.flaky == 0
    assert certificate.values.right + certificate.values.excluded == certificate.values.taken > 50
    assert {use.variant for use in certificate.uses} >= {
        "threads=2",
        "reruns=shapes",
        "lifecycle=order",
        "weights=file",
    }
    assert all(use.differs == 0 for use in certificate.uses)
    states = {claim.operator: claim.state for claim in certificate.claims}
    assert (states["MatMul"], states["Softmax"]) == (certificates.PROVEN, certificates.PROVEN)
    assert states["Abs"] == certificates.UNPROVEN
    assert certificate.contract.source == "its kernel registry"
    rules = {rule.name: rule.state for rule in certificate.contract.rules}
    assert rules["stdout"] == rules["errors Concat"] == "holds"
    assert (rules["registration"], rules["options"]) == ("not applicable", "remark")
    assert {library.role for library in certificate.contract.libraries} == {"runtime"}
    assert {profile.operator for profile in certificate.accuracy} == {"MatMul", "Softmax"}


def test_a_run_that_is_over_is_certified(made: folders.Checked, tmp_path: Path) -> None:
    (run,) = (made.folder.parent / "runs").iterdir()
    again = api.certify(api.CertifyOptions("cpu", run=run, out=tmp_path / "again"))
    assert again.certificate.run_id == made.certificate.run_id
    assert again.certificate.values == made.certificate.values


def test_a_run_of_another_target_is_not_certified(made: folders.Checked, tmp_path: Path) -> None:
    (run,) = (made.folder.parent / "runs").iterdir()
    for folder, message in ((run, "is a run of cpu, not of cpu-2 alone"), (tmp_path, "is not a run folder")):
        with pytest.raises(StoreError, match=message):
            folders.check_run(folder, "cpu-2")


def test_a_part_of_the_list_has_no_level(made: folders.Checked) -> None:
    certificate, thin, whole = made.certificate, *mustpass.load_mustpass()[-2:]
    assert (certificate.level, certificate.list) == ("none", certificates.PART)
    known = f"thin {thin.cases:,}, whole {whole.cases:,}"
    assert certificate.why == (
        f"Its {certificate.values.cases:,} cases are no list of suite {version('epcheck')} ({known}).",
    )
    assert not made.holds


def test_what_was_written_is_what_the_records_show(made: folders.Checked) -> None:
    checked = check(made.folder)
    assert (checked.doubts, checked.notes) == ((), ())
    assert checked.certificate == made.certificate
    assert (
        checked.signature == made.signature == hashlib.sha256((made.folder / "manifest.json").read_bytes()).hexdigest()
    )


def test_the_level_is_the_list_whose_cases_ran(made: folders.Checked) -> None:
    assert remake(made, contract=made.certificate.contract).level == "thin"
    assert remake(made, suite="9.9").level == "none"
    broken = Rule("stdout", "Nothing is written to stdout", BROKEN, "3 bytes: hi!")
    noisy = remake(made, contract=replace(made.certificate.contract, rules=(broken,)))
    assert (noisy.level, noisy.why) == ("none", ("Contract, stdout: 3 bytes: hi!.",))


def remake(made: folders.Checked, contract: Contract | None = None, suite: str = "") -> Certificate:
    """The certificate again, where the list `thin` has these cases."""
    certificate = made.certificate
    thin = Mustpass(
        "thin", suite or version("epcheck"), "1", certificate.values.cases, certificate.cases_digest
    )  # fmt: skip
    return make_certificate(made.folder, contract or certificate.contract, [thin], SUITE)


def test_failures_and_exclusions_decide_the_level(made: folders.Checked, copied: Path) -> None:
    journal = copied / "journal.jsonl"
    lines = journal.read_text(encoding="ascii").splitlines(keepends=True)
    journal.write_text("".join([change_record(lines[0], fail), *lines[1:]]), encoding="ascii", newline="")
    failing = remake(replace(made, folder=copied))
    assert (failing.level, failing.why) == ("none", ("1 case fails without an exclusion.",))
    assert [(group.cases, group.statuses) for group in failing.failures] == [(1, {"mismatch": 1})]
    assert failing.failures[0].text.startswith(f"{json.loads(lines[0])['operator']}: ")
    journal.write_text("".join([change_record(lines[0], exclude), *lines[1:]]), encoding="ascii", newline="")
    excluded = remake(replace(made, folder=copied))
    assert excluded.level == "thin with exclusions"
    assert [(group.text, group.cases) for group in excluded.exclusions] == [("It is known.", 1)]


def change_record(line: str, change: Callable[[dict[str, Any]], None]) -> str:
    """The line of a journal after a change, with its checksum left out and made anew."""
    fields = json.loads(line)
    del fields["crc32"]
    change(fields)
    return line_with_checksum(json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n").decode("ascii")


def fail(fields: dict[str, Any]) -> None:
    fields |= {"status": "mismatch", "reading": "failure", "blame": "candidate"}


def exclude(fields: dict[str, Any]) -> None:
    expected = {"case": "*", "status": "mismatch", "reason": "It is known."}
    fields |= {"status": "mismatch", "reading": "expected", "blame": "candidate", "expectation": expected}


def test_a_registered_operator_that_is_never_taken_is_told(made: folders.Checked, copied: Path) -> None:
    def decline(fields: dict[str, Any]) -> None:
        fields |= {"status": "unplaced", "reading": "ok", "blame": ""}

    journal = copied / "journal.jsonl"
    lines = journal.read_text(encoding="ascii").splitlines(keepends=True)
    changed = [change_record(line, decline) if '"operator":"Softmax"' in line else line for line in lines]
    journal.write_text("".join(changed), encoding="ascii", newline="")
    kernels = tuple(Kernel(name, (1, None), ("float32",), "covered") for name in ("Softmax", "Abs"))
    found = remake(replace(made, folder=copied), replace(made.certificate.contract, kernels=kernels))
    assert {claim.operator: claim.state for claim in found.claims} == {
        "Softmax": "never taken",
        "Abs": "without a case",
    }
    assert found.strangers == ("MatMul",)


@pytest.mark.parametrize("name", [*folders.FILES])
def test_a_file_that_was_changed_is_damage(name: str, copied: Path) -> None:
    content = (copied / name).read_bytes()
    (copied / name).write_bytes(content[:-2] + b"x\n")
    with pytest.raises(api.CertificateError, match=f"{name}: has not the size and SHA-256"):
        check(copied)


@pytest.mark.parametrize("name", [*folders.FILES, folders.MANIFEST])
def test_a_file_that_is_missing_is_damage(name: str, copied: Path) -> None:
    (copied / name).unlink()
    with pytest.raises(api.CertificateError, match=r"is missing|holds no manifest"):
        check(copied)


def test_a_file_that_nobody_signed_is_damage(copied: Path) -> None:
    (copied / "run.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    with pytest.raises(api.CertificateError, match=r"holds 'run\.py', which no manifest signs"):
        check(copied)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege there")
def test_a_link_is_not_followed(copied: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.move(copied / "run.json", outside)
    (copied / "run.json").symlink_to(outside)
    with pytest.raises(api.CertificateError, match=r"run\.json: is no ordinary file"):
        check(copied)


def change_manifest(folder: Path, **changes: Any) -> None:
    path = folder / folders.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def test_a_manifest_chooses_no_path(copied: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    signed = json.loads((copied / folders.MANIFEST).read_text(encoding="utf-8"))["files"]
    change_manifest(copied, files={**signed, "../secret": {"size": 6, "sha256": SUITE}})
    with pytest.raises(api.CertificateError, match=r"does not sign run.json, .*, and these alone"):
        check(copied)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"files": 1}', "cannot be read"),
        ("x" * ((1 << 20) + 1), "1,048,576 are read at most"),
    ],
)
def test_a_manifest_that_is_none_is_damage(text: str, message: str, copied: Path) -> None:
    (copied / folders.MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(api.CertificateError, match=message):
        check(copied)


def test_a_manifest_of_a_later_epcheck_is_refused(copied: Path) -> None:
    change_manifest(copied, schema=2)
    with pytest.raises(api.CertificateError, match=r"schema 2 is newer than this epcheck reads \(1\)"):
        check(copied)


def test_a_level_that_the_records_do_not_show_is_a_doubt(copied: Path) -> None:
    stated = typed_json.loads(Certificate, (copied / folders.CERTIFICATE).read_bytes())
    forged = strict_json.dumps(typed_json.to_json(replace(stated, level="whole", why=())))
    (copied / folders.CERTIFICATE).write_text(forged, encoding="utf-8")
    page = copied / folders.PAGE
    page.write_text(page.read_text(encoding="utf-8").replace("No level", "Level: whole"), encoding="utf-8")
    sign(copied)
    checked = check(copied)
    assert checked.doubts == (
        "certificate.json says something else than the records: 'whole' where they show 'none' (level, why).",
        "certificate.html is not the page that this epcheck makes of the records.",
    )
    assert (checked.certificate.level, checked.holds) == ("none", False)


def test_a_journal_that_was_cut_and_signed_again_is_a_doubt(copied: Path) -> None:
    lines = (copied / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (copied / "journal.jsonl").write_bytes(b"".join(lines[1:]))
    sign(copied)
    assert "certificate.json says something else than the records" in check(copied).doubts[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "webgpu"}, "its run is of cpu, and its contract of webgpu"),
        ({"facts": {"onnxruntime": "9.9"}}, r"its run is of onnxruntime .*, and its contract of 9\.9"),
    ],
)
def test_the_contract_of_another_provider_is_refused(copied: Path, changes: dict[str, Any], message: str) -> None:
    contract = json.loads((copied / folders.CONTRACT).read_text(encoding="utf-8"))
    (copied / folders.CONTRACT).write_text(json.dumps(contract | changes), encoding="utf-8")
    sign(copied)
    with pytest.raises(api.CertificateError, match=message):
        check(copied)


def test_other_libraries_than_those_of_the_contract_are_a_doubt(copied: Path) -> None:
    library = {"role": "library", "name": "x.so", "size": 1, "sha256": SUITE}
    change_manifest(copied, libraries=[library])
    assert check(copied).doubts == ("manifest.json names other libraries than contract.json.",)


def test_hostile_text_does_not_reach_the_page_or_the_terminal(made: folders.Checked, tmp_path: Path) -> None:
    hostile = Rule("stdout", "<script>alert(1)</script>", "holds", "\x1b[2J<img src=x onerror=alert(1)>")
    contract = replace(made.certificate.contract, rules=(hostile,))
    written = folders.write_certificate(tmp_path / "c", made.folder, contract, (), SUITE)
    page = (written.folder / folders.PAGE).read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_folder_with_something_else_is_left_alone(made: folders.Checked, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(api.CertificateError, match=r"holds 'thesis.txt', which is no part of a certificate"):
        folders.write_certificate(tmp_path, made.folder, made.certificate.contract, (), SUITE)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_exit_codes_of_the_command(made: folders.Checked, copied: Path) -> None:
    result = call("certify", "--check", str(made.folder))
    assert result.code == 1
    assert "cpu: no level; " in result.out
    assert made.signature in result.out
    (copied / "run.json").unlink()
    assert "run.json is missing" in refused("certify", "--check", str(copied))


def test_a_target_or_a_folder_has_to_be_named() -> None:
    for options in (api.CertifyOptions(), api.CertifyOptions("cpu", check=Path("x"))):
        with pytest.raises(OptionError, match="name a TARGET to certify, or a certificate with --check FOLDER"):
            api.certify(options)
