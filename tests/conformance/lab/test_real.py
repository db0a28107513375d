"""The lab itself, where one is installed in the default folder: DirectML computes, in a Windows process, on Linux."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from epcheck.cli.commands.machine.lab import app
from epcheck.conformance import lab

WORKER = """
import json, os, sys
if sys.argv[1]:
    exec(open(sys.argv[1]).read())
import numpy, onnxruntime
sys.stdout.flush()
options = onnxruntime.SessionOptions()
options.enable_mem_pattern = False
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
results = {}
for path, values in json.loads(sys.argv[2]):
    session = onnxruntime.InferenceSession(
        path, options, providers=[("DmlExecutionProvider", {"device_id": "0"})], enable_fallback=0
    )
    dtype = {"tensor(float)": "float32", "tensor(int64)": "int64"}[session.get_inputs()[0].type]
    results[session.get_providers()[0]] = results.get(session.get_providers()[0], [])
    results[session.get_providers()[0]].append(session.run(None, {"x": numpy.array(values, dtype)})[0].tolist())
print(json.dumps({"version": onnxruntime.__version__, "facts": sys._epcheck_facts(), "results": results}))
"""


@pytest.fixture(scope="module")
def installed(installed_lab: None) -> lab.LabStatus:  # noqa: ARG001
    return lab.status()


@pytest.fixture
def models(tmp_path: Path) -> list[tuple[str, list[int]]]:
    """Relu in float32, and Add in int64, which needs shader model 6."""
    made = []
    for operator, inputs, dtype, values in [
        ("Relu", ["x"], TensorProto.FLOAT, [-1, 2, -3, 4]),
        ("Add", ["x", "x"], TensorProto.INT64, [-1, 2, -3, 2**60]),
    ]:
        x, y = (helper.make_tensor_value_info(name, dtype, [4]) for name in "xy")
        graph = helper.make_graph([helper.make_node(operator, inputs, ["y"])], "g", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path = tmp_path / f"{operator}.onnx"
        path.write_bytes(model.SerializeToString())
        made.append((lab.windows_path(path), values))
    return made


def work(tmp_path: Path, models: list[tuple[str, list[int]]], runtime: str) -> tuple[dict[str, object], str]:
    """Run the worker; returns what it printed, and its standard error."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    launch = lab.python_launch(runtime=runtime)
    done = subprocess.run(
        [*launch.argv, lab.windows_path(script), lab.windows_path(lab.prelude()), json.dumps(models)],
        env=launch.env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed: dict[str, object] = json.loads(done.stdout)
    return printed, done.stderr


def test_every_runtime_of_the_lab_computes_on_directml(
    installed: lab.LabStatus, models: list[tuple[str, list[int]]], tmp_path: Path
) -> None:
    wanted = models if installed.dxil else models[:1]
    for runtime in installed.runtimes:
        printed, complaints = work(tmp_path, wanted, runtime)
        assert printed["results"] == {"DmlExecutionProvider": [[0, 2, 0, 4], [-2, 4, -6, 2**61]][: len(wanted)]}
        assert str(printed["version"]).startswith(runtime.removeprefix("windowsml-").rsplit(".", 1)[0])
        assert "fixme" not in complaints, complaints


def test_a_worker_knows_the_adapter_and_the_stack(
    installed: lab.LabStatus, models: list[tuple[str, list[int]]], tmp_path: Path
) -> None:
    facts = work(tmp_path, models[:1], installed.runtimes[0])[0]["facts"]
    assert isinstance(facts, dict)
    assert {"adapter", "vendor_id", "device_id", "driver_version", "graphics_stack"} <= set(facts)
    assert facts["graphics_stack"].startswith(f"wine {installed.wine_version}")
    assert facts["adapter"]


@pytest.mark.usefixtures("installed")
def test_nothing_of_wine_is_left_when_the_last_worker_is_gone() -> None:
    launch = lab.python_launch()
    subprocess.run([*launch.argv, "-c", "pass"], env=launch.env, stdin=subprocess.DEVNULL, check=True, timeout=60)
    deadline = time.monotonic() + 15
    while left := processes_of(launch.env["WINEPREFIX"]):
        if any("python.exe" in command for command in left):
            pytest.skip("somebody else's worker runs in the lab")
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.2)


def processes_of(prefix: str) -> list[str]:
    """The command lines of the processes that have this Wine prefix."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"WINEPREFIX={prefix}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " "))
        except OSError:
            continue
    return found


MULTIPLY = """
import sys
import numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
a = numpy.arange(24, dtype="uint8").reshape(6, 4)
b = numpy.arange(-10, 10, dtype="int8").reshape(4, 5)
(y,) = session.run(None, {"a": a, "b": b})
print((y == a.astype("int32") @ b.astype("int32")).all())
print("DmlExecutionProvider" in onnxruntime.get_available_providers())
sys.exit(int(sys.argv[2]))
"""


def test_a_script_has_directml_and_the_tiles_of_the_processor(
    installed: lab.LabStatus,  # noqa: ARG001
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    values = [
        helper.make_tensor_value_info(name, dtype, shape)
        for name, dtype, shape in [
            ("a", TensorProto.UINT8, [6, 4]),
            ("b", TensorProto.INT8, [4, 5]),
            ("y", TensorProto.INT32, [6, 5]),
        ]
    ]
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "multiply.py").write_text(MULTIPLY)
    arguments = [str(tmp_path / "multiply.py"), lab.windows_path(tmp_path / "model.onnx"), "7"]
    result = CliRunner().invoke(app, ["python", *arguments])
    assert result.exit_code == 7
    assert capfd.readouterr().out.split() == ["True", "True"]
