"""`epcheck report-bug`: a report for each fault group of a run, and for a model."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import onnx
import pytest

from epcheck import api, reports
from epcheck.api.bug_reports import writer
from epcheck.conformance.records.record import Expected, Record
from tests.command_line import refused
from tests.models.small_models import layers
from tests.reports.stored_records import a_crashed_topk, a_run, a_slice, a_wrong_slice, an_opinion, changed

HERE = Path(__file__).parents[2] / "models"
SAMPLES = ("axes_omitted_steps", "steps_omitted")


def a_failure(sample: str, dtype: str = "float32", **changes: object) -> Record:
    """A record of a case that the suite has."""
    return changed(a_wrong_slice(dtype, sample), case_id=f"Slice-13/{dtype}/{sample}[initializer]",
                   binding="initializer", **changes)  # fmt: skip


def a_run_folder(place: Path, *records: Record) -> Path:
    with reports.create(place, a_run(len(records), candidates=("dml", "dml@1.20.1"))) as journal:
        for record in records:
            journal.append(record)
        journal.close(a_run(len(records), candidates=("dml", "dml@1.20.1")))
    return place


@pytest.fixture
def run(tmp_path: Path) -> Path:
    known = Expected("Slice-*", "mismatch", "rounds the index")
    return a_run_folder(
        tmp_path / "run",
        a_slice(),
        a_failure(SAMPLES[0]),
        a_failure(SAMPLES[1]),
        a_failure(SAMPLES[0], candidate=an_opinion("dml@1.20.1", status="refused", message="no kernel")),
        a_failure(SAMPLES[1], "float16", reading="expected", expectation=known),
    )


def options(subject: Path, *cases: str, **changes: object) -> api.ReportBugOptions:
    return api.ReportBugOptions(subject, cases, again=False, out=subject.parent / "bugs", **changes)  # type: ignore[arg-type]


def test_a_run_has_a_report_for_each_fault_group(run: Path) -> None:
    first, second = api.report_bug(options(run))
    assert first.cases == tuple(f"Slice-13/float32/{sample}[initializer]" for sample in SAMPLES)
    assert first.issue.title == "[DirectML] Slice-13 (float32): 6 of 8 elements differ"
    assert [(each.who, each.status) for each in first.issue.answers] == [
        ("dml (1.24.4)", "mismatch"),
        ("cpu (1.24.4)", "pass"),
        ("dml@1.20.1", "refused"),
        ("oracle onnx.reference", "agrees"),
        ("oracle DML_SLICE1_OPERATOR_DESC", "agrees"),
    ]
    text = first.text.read_text(encoding="utf-8")
    assert "2 cases of Slice fail for the same reason" in text
    assert "output\\[0, 0, 0, 0\\]: expected 3, got 1" in text
    assert "### ONNX Runtime Version or Commit ID\n\n1.24.4\n" in text
    assert (second.issue.message, len(second.cases)) == ("no kernel", 1)


def test_the_zip_file_is_the_repro_and_runs(run: Path, tmp_path: Path) -> None:
    (report, _) = api.report_bug(options(run))
    assert report.archive is not None
    assert report.archive.stat().st_size < writer.MOST_BYTES
    with ZipFile(report.archive) as file:
        file.extractall(tmp_path / "unpacked")
    script = tmp_path / "unpacked" / "repro" / "run.py"
    done = subprocess.run(
        [sys.executable, script, "CPUExecutionProvider"], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout
    assert report.archive.read_bytes() == writer.archive(report.folder / "repro")  # the same each time


def test_a_case_stands_for_its_group_and_is_the_one_that_is_shown(run: Path) -> None:
    (report,) = api.report_bug(options(run, f"float32/{SAMPLES[1]}"))
    assert report.folder.name.startswith(f"Slice-13_float32_{SAMPLES[1]}")
    assert len(report.cases) == 2
    (known,) = api.report_bug(options(run, f"Slice-13/float16/{SAMPLES[1]}[initializer]"))
    assert "Known to epcheck: rounds the index" in known.text.read_text(encoding="utf-8")


def test_deviations_that_are_expected_are_reported_where_that_is_asked(run: Path) -> None:
    assert len(api.report_bug(options(run, expected=True))) == 3
    assert len(api.report_bug(options(run, expected=True, most=1))) == 1


def test_a_report_may_be_of_one_candidate_alone(run: Path) -> None:
    older = api.ReduceOptions(target="dml@1.20.1")
    (report,) = api.report_bug(options(run, model=older))
    assert report.issue.message == "no kernel"
    with pytest.raises(api.BugReportError, match=r"has no candidate 'cpu'; it has dml, dml@1.20.1"):
        api.report_bug(options(run, model=api.ReduceOptions(target="cpu")))


def test_other_targets_are_asked_about_the_repro(run: Path) -> None:
    report = api.report_bug(options(run, SAMPLES[1], also=("cpu", "nowhere")))[0]
    asked = {each.who: each for each in report.issue.answers}
    assert asked["cpu"].status == "pass"
    assert asked["nowhere"].status == "not asked"
    assert "nowhere" in asked["nowhere"].words


def test_a_path_of_this_machine_is_not_told(tmp_path: Path) -> None:
    path = "/home/somebody/ov/bin/python#OpenVINOExecutionProvider"
    wrong = a_failure(SAMPLES[0], candidate=an_opinion(path, status="mismatch", message="it is wrong"))
    stated = {path: {"onnxruntime": "1.24.1", "execution_provider": "OpenVINOExecutionProvider", "interpreter": path}}
    place = tmp_path / "run"
    with reports.create(place, a_run(1, candidates=(path,), targets=stated)) as journal:
        journal.append(wrong)
        journal.close(a_run(1, candidates=(path,), targets=stated))
    (report,) = api.report_bug(options(place))
    text = report.text.read_text(encoding="utf-8")
    assert "somebody" not in text
    assert "| OpenVINOExecutionProvider 1.24.1 | mismatch |" in text


def test_a_model_is_reduced_to_the_node_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)  # where a `python:` target is looked for
    onnx.save(layers(2), tmp_path / "model.onnx")
    target = "python:wrong_backends:doubles_relu"
    how = api.ReduceOptions(target=target, baseline="cpu", dims={"batch": 3}, own_process=False)
    (report,) = api.report_bug(options(tmp_path / "model.onnx", model=how))
    assert report.issue.title == f"[{target}] Relu: wrong output (value)"
    assert report.issue.facts[0] == ("nodes", "node 2 `n2` (Relu)")
    assert "A part of the model 'model.onnx' is not right" in report.text.read_text(encoding="utf-8")
    assert report.archive is not None
    assert [node.name for node in onnx.load(report.folder / "repro" / "model.onnx").graph.node] == ["n2"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere",), "nowhere"),
        (("RUN", "Relu-14/float32/x[runtime]"), "has no case 'Relu-14/float32/x[runtime]' that is wrong"),
        (("MODEL", "Slice"), "is not a run folder, so it has no case 'Slice'"),
    ],
)
def test_what_cannot_be_reported_is_a_sentence(run: Path, arguments: tuple[str, ...], sentence: str) -> None:
    onnx.save(layers(1), run.parent / "model.onnx")
    named = {"RUN": str(run), "MODEL": str(run.parent / "model.onnx")}
    assert sentence in refused("report-bug", *(named.get(word, word) for word in arguments), "--out", str(run.parent))


def test_a_model_that_is_right_has_nothing_to_report(tmp_path: Path) -> None:
    onnx.save(layers(1), tmp_path / "model.onnx")
    how = api.ReduceOptions(target="cpu", own_process=False)
    with pytest.raises(api.BugReportError, match=r"nothing to report: model.onnx runs on CPUExecutionProvider and is"):
        api.report_bug(options(tmp_path / "model.onnx", model=how))


def test_a_run_without_failures_has_nothing_to_report(tmp_path: Path) -> None:
    folder = a_run_folder(tmp_path / "run", a_slice())
    assert "has no failure: nothing to report; --expected" in refused("report-bug", str(folder))


def test_a_case_that_the_suite_does_not_have_is_a_sentence(tmp_path: Path) -> None:
    folder = a_run_folder(tmp_path / "run", a_crashed_topk(case_id="TopK-11/int64/gone[runtime]", sample="gone"))
    assert "unknown case 'TopK-11/int64/gone[runtime]'" in refused("report-bug", str(folder), "--out", str(tmp_path))


def test_a_repro_that_is_too_large_loses_its_test_data_first_and_then_is_none(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).bytes(700_000)
    (tmp_path / "test_data_set_0").mkdir()
    for name in ("model.onnx", "run.py", "case.json", "data.npz"):
        (tmp_path / name).write_bytes(noise if name == "data.npz" else b"x")
    (tmp_path / "test_data_set_0" / "input_0.pb").write_bytes(noise[::-1])
    packed = writer.archive(tmp_path)
    assert packed is not None
    with ZipFile(io.BytesIO(packed)) as file:
        assert sorted(file.namelist()) == [
            f"repro/{name}" for name in ("case.json", "data.npz", "model.onnx", "run.py")
        ]
    (tmp_path / "model.onnx").write_bytes(noise)
    assert writer.archive(tmp_path) is None


def test_no_file_name_has_what_a_system_refuses(run: Path) -> None:
    for report in api.report_bug(options(run)):
        assert re.fullmatch(r"[\w.\-]+", report.folder.name)
