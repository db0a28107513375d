"""The folder of a case: ONNX's test-data layout, and a script that needs the runtime only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from epcheck.conformance.test_data import repro
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.truth import Refusal, Selection
from tests.conformance.small_cases import identity

SLICE = "Slice-13/float32/rank_3_last_axis[runtime]"
REFUSED = next(c.id for c in suite.cases(["Slice"]) if isinstance(c.build().truth, Refusal))


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "run.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)


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
    right = f"right on CPUExecutionProvider, onnxruntime {onnxruntime.__version__}"
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, [f"{name} as expected", right], "")


def test_the_script_shows_what_is_wrong(built: BuiltCase, tmp_path: Path) -> None:
    folder = repro.write(built, tmp_path)
    arrays = dict(np.load(folder / "data.npz"))
    (name,) = repro.true_outputs(built)
    arrays[f"output.{name}"] = arrays[f"output.{name}"] + 1
    np.savez(folder / "data.npz", **arrays)
    done = run_script(folder, "CPUExecutionProvider")
    assert done.stdout.startswith(f"{name} WRONG\n")
    assert done.returncode == 1
    assert run_script(folder, "CPUExecutionProvider", "--git-bisect").returncode == 1


def test_a_case_that_must_be_refused_has_no_outputs_and_says_why(tmp_path: Path) -> None:
    built = suite.case_by_id(REFUSED).build()
    folder = repro.write(built, tmp_path)
    assert isinstance(built.truth, Refusal)
    assert list((folder / "test_data_set_0").glob("output_*")) == []
    assert json.loads((folder / "case.json").read_text())["refused"] == built.truth.reason
    done = run_script(folder, "CPUExecutionProvider")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("right: refused, as it must be: [ONNXRuntimeError]")


def test_a_provider_that_is_not_there_is_no_pass(built: BuiltCase, tmp_path: Path) -> None:
    folder = repro.write(built, tmp_path)
    done = run_script(folder, "ROCMExecutionProvider")
    assert (done.returncode, done.stderr) == (2, "")
    assert re.match(r"CANNOT RUN: onnxruntime \S+ has no ROCMExecutionProvider; it has \['", done.stdout)
    assert run_script(folder, "ROCMExecutionProvider", "--git-bisect").returncode == 125


CHANGES = {
    "elsewhere": ("operator", "Add", "CANNOT RUN"),
    "refused": ("refused", "a rule", "WRONG: accepted what must be refused: a rule"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_case_demands_is_checked(built: BuiltCase, tmp_path: Path, change: str) -> None:
    folder = repro.write(built, tmp_path)
    key, value, printed = CHANGES[change]
    case = json.loads((folder / "case.json").read_text())
    (folder / "case.json").write_text(json.dumps({**case, key: value}))
    if change == "elsewhere":  # as where a provider leaves the node to another one
        spoil(folder, "session.get_provider_graph_assignment_info()", "[]")
    done = run_script(folder, "CPUExecutionProvider")
    assert done.stdout.startswith(printed)
    assert done.returncode == (2 if change == "elsewhere" else 1)


def spoil(folder: Path, part: str, other: str) -> None:
    """Plant a fault of a provider in the script."""
    script = (folder / "run.py").read_text()
    assert part in script
    (folder / "run.py").write_text(script.replace(part, other))


FAULTS = {
    "dies": ("session.run(None, feeds)", "os.abort()", "WRONG: the process died with exit code"),
    "hangs": ("session.run(None, feeds)", "__import__('time').sleep(9)", "WRONG: it does not end within 2 s"),
    "refuses": ("session.run(None, feeds)", "1 / 0", "WRONG: refused: division by zero"),
    "unsteady": ("session.run(None, feeds)", "[__import__('numpy').random.rand(3)]", "WRONG"),
    "takes nothing": ("session.run(None, feeds)", "feeds['NOT_IMPLEMENTED : Could not find an implementation']",
                      "CANNOT RUN: CPUExecutionProvider does not take it"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_by_the_exit_code(built: BuiltCase, tmp_path: Path, fault: str) -> None:
    folder = repro.write(built, tmp_path)
    part, other, printed = FAULTS[fault]
    spoil(folder, part, other)
    if fault == "hangs":
        spoil(folder, "TIMEOUT_S = 300", "TIMEOUT_S = 2")
    done = run_script(folder, "CPUExecutionProvider")
    assert printed in done.stdout
    assert done.returncode == (2 if fault == "takes nothing" else 1), done.stdout


def test_outputs_are_judged_by_the_bound_of_the_operator(tmp_path: Path) -> None:
    built = suite.case_by_id("Exp-13/float32/whole_range[runtime]").build()
    folder = repro.write(built, tmp_path)
    arrays = dict(np.load(folder / "data.npz"))
    (name,) = repro.true_outputs(built)
    value, allowed = arrays[f"output.{name}"], arrays[f"allowed.{name}"]
    assert allowed.shape == value.shape
    at = np.unravel_index(int(np.argmin(np.abs(value - 1))), value.shape)
    (output,) = built.truth.outputs  # type: ignore[union-attr]
    assert allowed[at] == output.bound.bound * np.spacing(value[at])
    for factor, code in ((0.5, 0), (3, 1)):
        moved = value.copy()
        moved[at] += factor * allowed[at]
        assert run_with(folder, arrays, f"exact.{name}", moved.astype(np.float64), f"output.{name}", moved) == code
    assert onnx.load_tensor(folder / "test_data_set_0/allowed_0.pb").name == name


def test_a_zero_of_the_wrong_sign_is_wrong_where_a_rule_defines_it(tmp_path: Path) -> None:
    folder = repro.write(suite.case_by_id("Sin-7/float32/special[runtime]").build(), tmp_path)
    arrays = dict(np.load(folder / "data.npz"))
    truth = arrays["output.output"]
    assert np.signbit(truth[truth == 0]).tolist() == [False, True]
    assert numpy_helper.to_array(onnx.load_tensor(folder / "test_data_set_0/zeros_0.pb")).all()
    turned = np.where(truth == 0, -truth, truth)
    assert [run_with(folder, arrays, "output.output", value) for value in (truth, turned)] == [0, 1]
    assert run_with(folder, arrays, "output.output", turned, "zeros.output", truth > 0) == 0


def test_what_is_undefined_may_be_anything_or_refused(tmp_path: Path) -> None:
    folder = repro.write(
        suite.case_by_id("Cast-21/float32-int8/undefined_beyond_the_integers[runtime]").build(), tmp_path
    )
    arrays = dict(np.load(folder / "data.npz"))
    truth, where = arrays["output.output"], arrays["undefined.output"]
    assert np.flatnonzero(where).tolist() == [1, 2, 3, 4, 5]
    assert run_with(folder, arrays, "output.output", np.where(where, 77, truth)) == 0
    assert run_with(folder, arrays, "output.output", np.where(where, truth, 77).astype(np.int8)) == 1
    assert run_with(folder, arrays, "among.output", np.array([55], np.int8)) == 1
    refused = repro.write(suite.case_by_id("Div-14/int32/undefined_divisor_0[runtime]").build(), tmp_path)
    done = run_script(refused, "CPUExecutionProvider")
    if onnxruntime.__version__.startswith("1.24."):  # whose kernel ends the process, which nothing permits
        assert (done.returncode, "WRONG: the process died" in done.stdout) == (1, True)
    else:
        assert (done.returncode, "right: refused, as it may be" in done.stdout) == (0, True)


def run_with(folder: Path, arrays: dict[str, Any], *changed: Any) -> int:
    np.savez(folder / "data.npz", **{**arrays, **dict(zip(changed[::2], changed[1::2], strict=True))})
    return run_script(folder, "CPUExecutionProvider").returncode


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_selection_is_right_where_it_is_one_of_those_accepted(tmp_path: Path, spoilt: bool) -> None:
    case = next(c for c in suite.cases(["TopK"], ["float32"]) if isinstance(c.build().truth, Selection))
    folder = repro.write(case.build(), tmp_path)
    arrays = dict(np.load(folder / "data.npz"))
    arrays["accepted.1.0"], arrays["accepted.1.1"] = arrays["accepted.0.0"], arrays["accepted.0.1"]
    changed = ("accepted.0.0", arrays["accepted.0.0"] + 1)
    assert run_with(folder, arrays, *changed, *(("accepted.1.1", arrays["accepted.0.1"] + 1) if spoilt else ())) == (
        1 if spoilt else 0
    )


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
    assert (done.stdout.splitlines()[0], done.returncode, done.stderr) == ("y as expected", 0, "")


def test_a_folder_that_cannot_be_made_is_named(built: BuiltCase, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(repro.ReproError, match=r"cannot be written to '.*file[/\\]+Slice-13_.*': \w"):
        repro.write(built, tmp_path / "file")
