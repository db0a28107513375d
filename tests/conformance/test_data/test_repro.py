"""The folder of a case: ONNX's test-data layout, and a script that needs the runtime only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from small_cases import identity

from epcheck.conformance.test_data import repro
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.truth import Refusal

SLICE = "Slice-13/float32/rank_3_last_axis[runtime]"
REFUSED = next(c.id for c in suite.cases(["Slice"]) if isinstance(c.build().truth, Refusal))


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "run.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def built() -> BuiltCase:
    return suite.case_by_id(SLICE).build()


def test_model_inputs_and_outputs_are_onnx_test_data(built: BuiltCase, tmp_path: Path) -> None:
    folder = repro.write(built, tmp_path / "repro")
    assert folder == tmp_path / "repro/Slice-13_float32_rank_3_last_axis_runtime"
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model)
    for index, value in enumerate(model.graph.input):
        tensor = onnx.load_tensor(folder / f"test_data_set_0/input_{index}.pb")
        assert tensor.name == value.name
        assert np.array_equal(numpy_helper.to_array(tensor), built.feeds[value.name])
    (expected,) = repro.true_outputs(built).values()
    output = numpy_helper.to_array(onnx.load_tensor(folder / "test_data_set_0/output_0.pb"))
    assert (output.dtype, output.tobytes()) == (expected.dtype, expected.tobytes())


def test_the_script_runs_on_a_provider_and_says_as_expected(built: BuiltCase, tmp_path: Path) -> None:
    done = run_script(repro.write(built, tmp_path), "CPUExecutionProvider")
    (name,) = repro.true_outputs(built)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{name} as expected\n", "")


def test_the_script_shows_what_is_wrong(built: BuiltCase, tmp_path: Path) -> None:
    folder = repro.write(built, tmp_path)
    arrays = dict(np.load(folder / "data.npz"))
    (name,) = repro.true_outputs(built)
    arrays[f"output.{name}"] = arrays[f"output.{name}"] + 1
    np.savez(folder / "data.npz", **arrays)
    done = run_script(folder, "CPUExecutionProvider")
    assert done.stdout.startswith(f"{name} WRONG\n")


def test_a_case_that_must_be_refused_has_no_outputs_and_says_why(tmp_path: Path) -> None:
    built = suite.case_by_id(REFUSED).build()
    folder = repro.write(built, tmp_path)
    assert isinstance(built.truth, Refusal)
    assert list((folder / "test_data_set_0").glob("output_*")) == []
    assert f"must be refused ({built.truth.reason})" in (folder / "run.py").read_text()


def test_every_true_selection_and_output_is_written(tmp_path: Path) -> None:
    case = next(iter(suite.cases(["TopK"], ["float32"])))
    folder = repro.write(case.build(), tmp_path)
    assert sorted(path.name for path in (folder / "test_data_set_0").glob("output_*")) == ["output_0.pb", "output_1.pb"]


def test_writing_again_leaves_nothing_of_before(built: BuiltCase, tmp_path: Path) -> None:
    folder = repro.write(built, tmp_path)
    (folder / "test_data_set_0/input_99.pb").write_bytes(b"old")
    assert not (repro.write(built, tmp_path) / "test_data_set_0/input_99.pb").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["../../etc", "a/b", "a\\b", "..", "nul\0", "con:", 'quote"""', "{braces}", "back\\slash"]
)
def test_no_name_leads_out_of_the_folder_or_into_the_script(tmp_path: Path, name: str) -> None:
    folder = repro.write(identity(name).build(), tmp_path)
    assert folder.parent == tmp_path
    assert folder.is_dir()
    compile((folder / "run.py").read_text(), "run.py", "exec")
    done = run_script(folder, "CPUExecutionProvider")
    assert (done.stdout, done.stderr) == ("y as expected\n", "")


def test_a_folder_that_cannot_be_made_is_named(built: BuiltCase, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(repro.ReproError, match=r"cannot be written to '.*file/Slice-13_.*': Not a directory"):
        repro.write(built, tmp_path / "file")
