"""What the rebuilt vkd3d does between Direct3D and a driver, on the software driver, where tests alone turn it on."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from epcheck.conformance import lab
from epcheck.conformance.workers.program.backends import directml

WORKER = """
import glob, json, sys, time
exec(open(sys.argv[1]).read())
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.enable_mem_pattern = False
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")

def run(path, **feeds):
    dml = [("DmlExecutionProvider", {"device_id": "0"})]
    return onnxruntime.InferenceSession(path, options, providers=dml, enable_fallback=0).run(None, feeds)[0]

power, nothing = sys.argv[2:4]
computed, held = [], []
for number in range(1, 9):
    matrix = numpy.roll(numpy.eye(500, dtype="float32"), number, axis=0)
    computed.append(bool(numpy.array_equal(run(power, x=matrix), numpy.linalg.matrix_power(matrix, 8))))
    unwritten = run(nothing, x=numpy.zeros((0, 500), "float32"), pads=numpy.array([0, 0, 500, 0], "int64"))
    held.append(float(numpy.abs(unwritten).max()))
until = time.monotonic() + 30
while not glob.glob(sys.argv[4] + "/pipelines-*") and time.monotonic() < until:
    time.sleep(0.1)
print(json.dumps({"computed": computed, "held": held}))
"""

ASKS = """
import ctypes, importlib, json, sys, time
exec(open(sys.argv[1]).read())
sys.path.insert(0, sys.argv[2])
d3d12 = importlib.import_module("directml.d3d12")
fence = d3d12.Device().object.make(
    "ID3D12Device::CreateFence", 36, d3d12.IID_FENCE, ctypes.c_uint64(0), ctypes.c_int32(0)
)
com = importlib.import_module("directml.com")
value = com.function(fence.pointer, 8, ctypes.c_uint64)
took = []
for _ in range(50):
    time.sleep(0.002)
    began = time.perf_counter()
    value(fence.pointer)
    took.append(time.perf_counter() - began)
began, over_and_over = time.perf_counter(), 0
while time.perf_counter() - began < 1:
    over_and_over += 1
    assert value(fence.pointer) == 0
fence.expect("ID3D12Fence::Signal", 10, ctypes.c_uint64(7))
print(json.dumps({"over_and_over": over_and_over, "now_and_then": sorted(took)[25], "signalled": value(fence.pointer)}))
"""


@pytest.fixture
def power(tmp_path: Path) -> Path:
    """The eighth power of a matrix: three products, which take the software driver a while."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [500, 500]) for name in "xy")
    nodes = [helper.make_node("MatMul", [name, name], [out]) for name, out in ("xa", "ab", "by")]
    return written(tmp_path / "power.onnx", nodes, [x], [y])


@pytest.fixture
def nothing(tmp_path: Path) -> Path:
    """A node whose output DirectML's provider does not write: docs/findings tells of Pad with an empty input."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [0, 500])
    pads = helper.make_tensor_value_info("pads", TensorProto.INT64, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 500])
    return written(tmp_path / "nothing.onnx", [helper.make_node("Pad", ["x", "pads"], ["y"])], [x, pads], [y])


@pytest.fixture
def kept_in(installed_lab: None) -> Iterator[Path]:  # noqa: ARG001
    """A folder of the lab: Wine's server writes for its programs, and may have been started by a worker in its jail."""
    folder = Path(tempfile.mkdtemp(dir=lab.written_folders()[1]))
    yield folder
    shutil.rmtree(folder)


def written(path: Path, nodes: list[NodeProto], inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_semaphores_and_memory_that_are_used_again_are_as_new_ones(
    kept_in: Path,
    power: Path,
    nothing: Path,
    tmp_path: Path,
) -> None:
    if not lab.status().dxil:
        pytest.skip("the lab was made without its own vkd3d")
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    launch = lab.python_launch()
    environment = {**launch.env, "EPCHECK_HOOK_SOFTWARE": "1", "EPCHECK_PIPELINES": lab.windows_path(kept_in)}
    done = subprocess.run(
        [*launch.argv, *map(lab.windows_path, (script, lab.prelude(), power, nothing, kept_in))],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"computed": [True] * 8, "held": [0.0] * 8}
    (kept,) = kept_in.glob("pipelines-*")
    assert len(kept.name) == len("pipelines-") + 32
    assert int.from_bytes(kept.read_bytes()[:4], "little") == 32, "the size of a pipeline cache's header"


def test_a_thread_that_asks_a_fence_over_and_over_sleeps_in_between(
    installed_lab: None,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    if not lab.status().dxil:
        pytest.skip("the lab was made without its own vkd3d")
    script = tmp_path / "asks.py"
    script.write_text(ASKS)
    launch = lab.python_launch()
    done = subprocess.run(
        [*launch.argv, *map(lab.windows_path, (script, lab.prelude(), Path(directml.__file__).parent.parent))],
        env=launch.env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["over_and_over"] < 50_000, "it sleeps after 10 ms; a thread that spins asks 480,000 times a second"
    assert found["now_and_then"] < 0.0002, (
        "whoever looks in now and then, which is every 2 ms, does not wait, in seconds"
    )
    assert found["signalled"] == 7
