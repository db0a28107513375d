"""What epcheck's commands take for a decoder of some gigabytes: seconds, and the memory of their processes.

    python benchmarks/large_decoder.py --gib 1.5 --dtype float16                    # epcheck validate --target cpu
    python benchmarks/large_decoder.py --gib 2.5 --dtype float32 -- validate --target dml
    python benchmarks/large_decoder.py --gib 2.5 --dtype float32 --wrong -- doctor --target cpu
    python benchmarks/large_decoder.py --gib 1 --dtype float32 --contrib            # MatMulNBits, GroupQueryAttention
    python benchmarks/large_decoder.py --gib 2.5 --folder FOLDER --build            # the model alone, which is kept

The decoder has a cache of keys and values, rotary positions, fewer heads for keys than for queries, and a gated
feed-forward, in plain operators, as language models are exported; its random weights, in one file beside it, are scaled
so that values keep their size. With --contrib the products are MatMulNBits with weights of 4 bits, in blocks of 32, and
attention is GroupQueryAttention with its cache and rotation, as language models are exported for ONNX Runtime; no
sequence is padded. --wrong plants a fault in the middle layer: in float16 the weights of two projections
whose product is right, with a value between them that is beyond float16; in float32 a quantiser whose scale is so small
that most values are beyond its range. `feeds.npz` beside the model has feeds of a prompt of 8 tokens.

Memory is the largest resident set of each process, mapped pages of the model's file included: `examiner` is the process
that reads the model and has the oracle, `others` are the sessions of the targets, of which one runs at a time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.large_model import COMMAND, POLL_S, family
from epcheck.models.feeds import feeds
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std
from epcheck.models.zoo.layers import attend, merge_heads, split_heads

VOCABULARY, POSITIONS, WIDTH, INNER, HEADS, KEY_HEADS = 32_000, 512, 2048, 5632, 16, 4
SIZE = WIDTH // HEADS
PAST, NEW = "past_sequence_length", "sequence_length"
TOTAL = f"{PAST} + {NEW}"
OF_LAYER = 2 * WIDTH * WIDTH + 2 * WIDTH * KEY_HEADS * SIZE + 3 * WIDTH * INNER
"""Elements of the weights of a layer."""

MICROSOFT = "com.microsoft"
BITS, BLOCK, STEP = 4, 32, 2.5
"""Of quantised weights; STEP: levels in a standard deviation."""

TOO_LARGE = 2.0**18
"""How much too large a value of a wrong model is."""


class ExternalBuilder(GraphBuilder):
    """A graph builder whose large weights go to a file as they are made. is_contrib: whether the operators are those of
    com.microsoft."""

    def __init__(self, file: IO[bytes], dtype: str, is_contrib: bool) -> None:
        super().__init__("large_decoder", opset=17, domains=(MICROSOFT,) * is_contrib, dtype=dtype)
        self._file, self.is_contrib = file, is_contrib

    def quantized_weight(self, sizes: tuple[int, int], std: float) -> tuple[str, str]:
        """Levels and scales of the weights of a MatMulNBits, normally distributed."""
        rows, columns = sizes
        levels = np.rint(self._rng.standard_normal((columns, rows), np.float32) * np.float32(STEP)) + 8
        pairs = np.clip(levels, 0, 15).astype(np.uint8).reshape(columns, rows // BLOCK, BLOCK // 2, 2)
        scales = np.full((columns, rows // BLOCK), std / STEP, self.dtype)
        return self.constant(pairs[..., 0] | pairs[..., 1] << 4, "weight_Q4"), self.constant(scales, "weight_scales")

    def weight(self, name: str, dims: Sequence[int], std: float, mean: float = 0.0) -> str:
        """An initializer, normally distributed, drawn in float32."""
        values = self._rng.standard_normal(dims, np.float32)
        values *= np.float32(std)
        values += np.float32(mean)
        return self.constant(values.astype(self.dtype, copy=False), name)

    def constant(self, value: Any, name: str = "constant") -> str:
        """An initializer; from 1 KiB on its data is in the file."""
        if not isinstance(value, np.ndarray) or value.nbytes < 1 << 10:
            return super().constant(value, name)
        full = self._unique(".".join((*self._scope, name)))
        tensor = TensorProto(name=full, data_type=helper.np_dtype_to_tensor_dtype(value.dtype), dims=value.shape)
        tensor.data_location = TensorProto.EXTERNAL
        self._file.seek(-(-self._file.tell() // 4096) * 4096)
        where = {"location": Path(self._file.name).name, "offset": self._file.tell(), "length": value.nbytes}
        for key, entry in where.items():
            tensor.external_data.add(key=key, value=str(entry))
        self._file.write(value.data)
        self._weights.append(tensor)
        return full


def build(folder: Path, size: float, dtype: str, wrong: bool = False, is_contrib: bool = False) -> Path:
    """A decoder of about so many bytes in a folder; the path of its model."""
    itemsize = np.dtype(dtype).itemsize
    of_weight = BITS / 8 + itemsize / BLOCK if is_contrib else itemsize
    layers = max(1, round((size - VOCABULARY * WIDTH * (itemsize + of_weight)) / (OF_LAYER * of_weight)))
    with (folder / "model.onnx.data").open("wb") as file:
        net = ExternalBuilder(file, dtype, is_contrib)
        ids = net.input("input_ids", "int64", ("batch", NEW))
        mask = net.input("attention_mask", "int64", ("batch", TOTAL))
        positions = net.input("position_ids", "int64", ("batch", NEW))
        cache = ("batch", KEY_HEADS, PAST, SIZE)
        past = [
            tuple(net.input(f"past_key_values.{index}.{part}", dtype, cache) for part in ("key", "value"))
            for index in range(layers)
        ]
        x = net.add("Gather", net.weight("embed_tokens.weight", (VOCABULARY, WIDTH), 0.7), ids)
        about = _lengths(net, mask, ids) if is_contrib else (
            *_rotations(net, positions), _causal_bias(net, mask, past[0][0]))  # fmt: skip
        for index in range(layers):
            with net.scope(f"layers.{index}"):
                x = _layer(net, x, about, past[index], index, wrong and index == layers // 2)
        _project(net, _rms_norm(net, x), (WIDTH, VOCABULARY), "lm_head", named="logits")
        net.output("logits", dtype, ("batch", NEW, VOCABULARY))
        for index in range(layers):
            for part in ("key", "value"):
                net.output(f"present.{index}.{part}", dtype, ("batch", KEY_HEADS, TOTAL, SIZE))
    path = folder / "model.onnx"
    model = net.model()
    path.write_bytes(model.SerializeToString())
    found = feeds.generate(model)
    np.savez(folder / "feeds.npz", **{name: value for name, value in found.items() if isinstance(value, np.ndarray)})
    return path


def _project(
    net: ExternalBuilder, x: str, sizes: tuple[int, int], name: str, gain: float = 1.0, named: str = ""
) -> str:
    with net.scope(name):
        if net.is_contrib:
            weights = net.quantized_weight(sizes, fan_in_std(sizes[0], gain))
            return net.add("MatMulNBits", x, *weights, named=named, domain=MICROSOFT, K=sizes[0], N=sizes[1], bits=BITS,
                           block_size=BLOCK)  # fmt: skip
        return net.add("MatMul", x, net.weight("weight", sizes, fan_in_std(sizes[0], gain)), named=named)


def _rms_norm(net: GraphBuilder, x: str) -> str:
    """In its parts and in float32, as it is exported."""
    wide = net.add("Cast", x, to=TensorProto.FLOAT)
    exponent, epsilon = net.constant(np.float32(2.0)), net.constant(np.float32(1e-6))
    mean = net.add("ReduceMean", net.add("Pow", wide, exponent), axes=[-1], keepdims=1)
    normalised = net.add("Div", wide, net.add("Sqrt", net.add("Add", mean, epsilon)))
    narrow = net.add("Cast", normalised, to=helper.np_dtype_to_tensor_dtype(net.dtype))
    return net.add("Mul", narrow, net.weight("norm.weight", (WIDTH,), 0.1, mean=1.0))


def _lengths(net: GraphBuilder, mask: str, ids: str) -> tuple[str, str, str, str]:
    """What GroupQueryAttention reads behind its cache: the last position of a sequence, the number of all, cosine and
    sine of the angles at all positions."""
    step = net.constant(np.int32(1))
    batch = net.add("Gather", net.add("Shape", ids), net.constant([0]), axis=0)
    total = net.add("Gather", net.add("Shape", mask), net.constant(np.int64(1)), axis=0)
    count = net.add("Cast", total, to=TensorProto.INT32)
    last = net.add("Expand", net.add("Sub", count, step), batch)
    angles = _angles()
    cosine, sine = (net.constant(table.astype(net.dtype), "rotary.cache") for table in (np.cos(angles), np.sin(angles)))
    return last, count, cosine, sine


def _angles() -> Any:
    return np.arange(POSITIONS)[:, None] / 10000.0 ** (np.arange(0, SIZE, 2)[None] / SIZE)


def _rotations(net: GraphBuilder, positions: str) -> tuple[str, str]:
    """Cosine and sine of the angles at the positions, [batch, 1, new, SIZE]."""
    angles = _angles()
    both, heads = np.concatenate([angles, angles], axis=1), net.constant([1])
    tables = (net.constant(table.astype(net.dtype), "rotary.cached") for table in (np.cos(both), np.sin(both)))
    cosine, sine = (net.add("Unsqueeze", net.add("Gather", table, positions), heads) for table in tables)
    return cosine, sine


def _rotate_heads(net: GraphBuilder, x: str, cosine: str, sine: str) -> str:
    start, half, end, axis = (net.constant([value]) for value in (0, SIZE // 2, SIZE, 3))
    first, second = net.add("Slice", x, start, half, axis), net.add("Slice", x, half, end, axis)
    turned = net.add("Concat", net.add("Neg", second), first, axis=-1)
    return net.add("Add", net.add("Mul", x, cosine), net.add("Mul", turned, sine))


def _causal_bias(net: GraphBuilder, mask: str, key: str) -> str:
    """0 where a position may look, the lowest number where it may not, [batch, 1, new, past + new]."""
    step, zero = net.constant(np.int64(1)), net.constant(np.int64(0))
    total = net.add("Gather", net.add("Shape", mask), step, axis=0)
    past = net.add("Gather", net.add("Shape", key), net.constant(np.int64(2)), axis=0)
    keys, queries = net.add("Range", zero, total, step), net.add("Range", past, total, step)
    causal = net.add("LessOrEqual", keys, net.add("Unsqueeze", queries, net.constant([1])))
    real = net.add("Unsqueeze", net.add("Cast", mask, to=TensorProto.BOOL), net.constant([1, 2]))
    lowest = float(np.finfo(net.dtype).min)
    return net.add("Where", net.add("And", causal, real), net.constant(0.0), net.constant(lowest))


def _repeat_heads(net: GraphBuilder, x: str) -> str:
    """Each head of the keys for as many heads of the queries as share it."""
    shape = net.add("Shape", x)
    parts = [net.add("Slice", shape, net.constant([start]), net.constant([end])) for start, end in ((0, 1), (2, 4))]
    sizes = [net.add("Concat", parts[0], *(net.constant([each]) for each in middle), parts[1], axis=0)
             for middle in ((KEY_HEADS, HEADS // KEY_HEADS), (HEADS,))]  # fmt: skip
    return net.add("Reshape", net.add("Expand", net.add("Unsqueeze", x, net.constant([2])), sizes[0]), sizes[1])


def _attend_by_parts(
    net: ExternalBuilder, parts: tuple[str, str, str], about: tuple[str, ...], past: tuple[str, ...], index: int
) -> str:
    """In plain operators."""
    cosine, sine, bias = about
    query, key, value = (
        split_heads(net, part, heads, SIZE) for part, heads in zip(parts, (HEADS, KEY_HEADS, KEY_HEADS), strict=True)
    )
    turned = _rotate_heads(net, key, cosine, sine)
    keys = net.add("Concat", past[0], turned, axis=2, named=f"present.{index}.key")
    values = net.add("Concat", past[1], value, axis=2, named=f"present.{index}.value")
    query = _rotate_heads(net, query, cosine, sine)
    attended = attend(net, query, _repeat_heads(net, keys), _repeat_heads(net, values), SIZE, bias)
    return merge_heads(net, attended, WIDTH)


def _attend_at_once(
    net: ExternalBuilder, parts: tuple[str, str, str], about: tuple[str, ...], past: tuple[str, ...], index: int
) -> str:
    """In a GroupQueryAttention."""
    named = ("", f"present.{index}.key", f"present.{index}.value")
    attended, _, _ = net.add_all("GroupQueryAttention", *parts, *past, *about, named=named, domain=MICROSOFT,
                                 num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1)  # fmt: skip
    return attended


def _layer(net: ExternalBuilder, x: str, about: tuple[str, ...], past: tuple[str, ...], index: int, wrong: bool) -> str:
    with net.scope("self_attn"):
        normalised, width = _rms_norm(net, x), KEY_HEADS * SIZE
        parts = (
            _project(net, normalised, (WIDTH, WIDTH), "q_proj"),
            _project(net, normalised, (WIDTH, width), "k_proj"),
            _project(net, normalised, (WIDTH, width), "v_proj"),
        )
        attend_with = _attend_at_once if net.is_contrib else _attend_by_parts
        attended = attend_with(net, parts, about, past, index)
        x = net.add("Add", x, _project(net, attended, (WIDTH, WIDTH), "o_proj"))
    with net.scope("mlp"):
        normalised, gain = _rms_norm(net, x), TOO_LARGE if wrong and net.dtype == np.float16 else 1.0
        gate = _project(net, normalised, (WIDTH, INNER), "gate_proj")
        gated = net.add("Mul", gate, net.add("Sigmoid", gate))
        hidden = net.add("Mul", gated, _project(net, normalised, (WIDTH, INNER), "up_proj", gain))
        if wrong and net.dtype == np.float32:
            hidden = _saturate(net, hidden)
        return net.add("Add", x, _project(net, hidden, (INNER, WIDTH), "down_proj", 1 / gain))


def _saturate(net: GraphBuilder, x: str) -> str:
    """Through int8 with a scale for a tenth of the values' range."""
    parameters = net.constant(np.float32(0.1 / 127), "scale"), net.constant(np.int8(0), "zero_point")
    return net.add("DequantizeLinear", net.add("QuantizeLinear", x, *parameters), *parameters)


def measure(arguments: Sequence[str]) -> tuple[float, int, int, int]:
    """A command of epcheck: its seconds, the largest resident set of the process that reads the model and of any other,
    in bytes, and its exit code."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", COMMAND, *arguments])
    examiner, others = 0, 0
    while process.poll() is None:
        for member in family(process.pid):
            try:
                resident, line = member.memory_info().rss, " ".join(member.cmdline())
            except psutil.Error:
                continue
            if "examiner" in line:
                examiner = max(examiner, resident)
            else:
                others = max(others, resident)
        time.sleep(POLL_S)
    return time.perf_counter() - started, examiner, others, process.returncode


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def main() -> int:
    """Build, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.5, help="size of the model")
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float16")
    parser.add_argument("--contrib", action="store_true", help="with MatMulNBits and GroupQueryAttention")
    parser.add_argument("--wrong", action="store_true", help="with a planted fault")
    parser.add_argument("--folder", type=Path, help="where the model is kept; one that is there is used")
    parser.add_argument("--build", action="store_true", help="build the model and run nothing")
    parser.add_argument("arguments", nargs="*", help="a command of epcheck without the model, after --")
    options = parser.parse_args()
    with _place(options.folder) as folder:
        path = folder / "model.onnx"
        if not path.exists():
            build(folder, options.gib * 2**30, options.dtype, options.wrong, options.contrib)
        size = sum(path.stat().st_size for path in folder.glob("model.onnx*"))
        if options.build:
            print(f"{path}: {size / 2**30:.2f} GiB")
            return 0
        command, *more = options.arguments or ["validate", "--target", "cpu"]
        seconds, examiner, others, returncode = measure([command, str(path), *more])
    print(f"{command}, {size / 2**30:.2f} GiB: {seconds:.0f} s, examiner {examiner / 2**30:.2f} GiB, "
          f"others {others / 2**30:.2f} GiB, exit code {returncode}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
