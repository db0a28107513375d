"""How much memory `epcheck validate` takes for a large model, relative to the model's size.

    python benchmarks/large_model.py                      # 4 GiB of float32 weights in external data
    python benchmarks/large_model.py --gib 0.5 1 4        # several sizes
    python benchmarks/large_model.py --gib 1 --embedded   # weights inside the .onnx file, which ends at 2 GiB
    python benchmarks/large_model.py --plain              # and of a session of onnxruntime without epcheck

The model is a chain of MatMul and Relu with random weights: real, dense bytes on the disk, in a temporary folder. The
command runs as its user runs it, and the memory of its whole process tree is sampled: the proportional set size (PSS),
in which a page that n processes share counts 1/n in each, mapped pages of the model's file included. Where a system
tells no PSS it is the unique set size. The disk's cache, which belongs to no process, does not count.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import psutil
from onnx import TensorProto, helper

WIDTH = 4096
"""Rows and columns of each weight: 64 MiB of float32."""

POLL_S = 0.05
ASKED = 2.0
"""Peak memory over the model's size, as promised."""

COMMAND = "from epcheck.cli.start import main; main()"

PLAIN = """
import sys
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
(x,) = session.get_inputs()
session.run(None, {"x": np.ones((1, x.shape[1]), np.float16 if "float16" in x.type else np.float32)})
"""
"""A session without epcheck: what the runtime itself takes."""


@dataclass(frozen=True)
class Measured:
    """bytes: of the model's files. peak: bytes of the process tree together at the worst moment, processes how many
    they were then. returncode: of the command."""

    bytes: int
    peak: int
    processes: int
    seconds: float
    returncode: int
    output: str

    @property
    def ratio(self) -> float:
        """Peak over size."""
        return self.peak / self.bytes


def build(folder: Path, size: int, dtype: str = "float32", embedded: bool = False) -> Path:
    """A model of about so many bytes, at least one layer; layers differ, weights are those of He's initialisation."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    layer_bytes = WIDTH * WIDTH * np.dtype(dtype).itemsize
    layers = max(1, round(size / layer_bytes))
    rng, nodes, weights = np.random.default_rng(0), [], []
    with (folder / "weights.bin").open("wb") as file:
        for index in range(layers):
            values = rng.standard_normal((WIDTH, WIDTH), np.float32) * np.float32(math.sqrt(2 / WIDTH))
            tensor = onnx.TensorProto(name=f"weight_{index}", data_type=element, dims=[WIDTH, WIDTH])
            if embedded:
                tensor.raw_data = values.astype(dtype).tobytes()
            else:
                tensor.data_location = TensorProto.EXTERNAL
                for key, value in (("location", file.name), ("offset", file.tell()), ("length", layer_bytes)):
                    tensor.external_data.add(key=key, value=Path(value).name if key == "location" else str(value))
                file.write(values.astype(dtype).data)
            weights.append(tensor)
            before = f"relu_{index - 1}" if index else "x"
            nodes.append(helper.make_node("MatMul", [before, tensor.name], [f"matmul_{index}"], name=f"matmul_{index}"))
            nodes.append(helper.make_node("Relu", [f"matmul_{index}"], [f"relu_{index}"], name=f"relu_{index}"))
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", element, ["batch", WIDTH])],
        [helper.make_tensor_value_info(f"relu_{layers - 1}", element, ["batch", WIDTH])],
        weights,
    )
    path = folder / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with path.open("wb") as file:
        file.write(model.SerializeToString())
    if embedded:
        (folder / "weights.bin").unlink()
    return path


def measured(model: Path, program: str, arguments: Sequence[str]) -> Measured:
    """A Python program on the model, and what its process tree takes."""
    size = sum(file.stat().st_size for file in model.parent.iterdir())
    started = time.perf_counter()
    with (model.parent.parent / "said.txt").open("w+", encoding="utf-8") as output:
        process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=output, stderr=subprocess.STDOUT)
        peak, processes = 0, 0
        while process.poll() is None:
            now = [memory(member) for member in family(process.pid)]
            if sum(now) > peak:
                peak, processes = sum(now), len(now)
            time.sleep(POLL_S)
        seconds = time.perf_counter() - started
        output.seek(0)
        return Measured(size, peak, processes, seconds, process.returncode, output.read())


def family(pid: int) -> list[psutil.Process]:
    """The process and its descendants, as far as they are there."""
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    return []


def memory(process: psutil.Process) -> int:
    """Bytes of its proportional set size; 0 when it is gone."""
    try:
        info = process.memory_full_info()
    except (psutil.Error, OSError):
        return 0
    return int(getattr(info, "pss", info.uss))


def main() -> int:
    """Build, measure, print; exit code 1 where the promise is missed or the model was not right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, nargs="+", default=[4.0], help="size of the model; several are possible")
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32")
    parser.add_argument("--embedded", action="store_true", help="weights inside the .onnx file")
    parser.add_argument("--plain", action="store_true", help="measure a session of onnxruntime alone, too")
    parser.add_argument("arguments", nargs="*", help="further arguments of `epcheck validate`, after --")
    options = parser.parse_args()
    missed = False
    for gib in options.gib:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            folder.mkdir()
            model = build(folder, round(gib * 2**30), options.dtype, options.embedded)
            arguments = options.arguments or ["--target", "cpu"]
            if options.plain:
                alone = measured(model, PLAIN, [str(model)])
                print(f"onnxruntime alone: {alone.ratio:.2f} x the model", flush=True)
            found = measured(model, COMMAND, ["validate", str(model), *arguments])
        print(
            f"{found.bytes / 2**30:.2f} GiB: peak {found.peak / 2**30:.2f} GiB in {found.processes} processes, "
            f"{found.ratio:.2f} x the model (promised: {ASKED:g}), {found.seconds:.0f} s, exit code {found.returncode}",
            flush=True,
        )
        if found.returncode:
            print(found.output)
        missed |= found.ratio > ASKED or found.returncode != 0
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
