"""Nodes whose speed is worth comparing: shapes of real models, and sizes that fill a GPU.

    MatMul-13/float32/square_4096    Conv-11/float16/resnet50_3x3_512_batch_32    GRU-14/float32/one_step

SMALL ones take a CPU 0.05 to 20 ms, LARGE ones a GPU as much. Sources: K. He et al., Deep residual learning for image
recognition, 2015, table 1 (resnet50); M. Sandler et al., MobileNetV2, 2018, table 2; J. Devlin et al., BERT, 2018
(bert: 12 heads, 768 wide, 128 tokens, vocabulary 30522); H. Touvron et al., Llama 2, 2023 (llama: 32 heads, 4096 wide,
11008 in its MLP, 4096 tokens); R. Rombach et al., Stable diffusion 1.5, 2022 (unet: 320 channels of 64 x 64);
A. Radford et al., GPT-2, 2019 (vocabulary 50257); issues 27093, 27115, 27155 and 27188 of ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.harvested.harvested_node import HarvestedNode, digest
from epcheck.generators.node import Attribute, Node, Operand, split_name
from epcheck.generators.operator import random_source
from epcheck.generators.registry import all_operators
from epcheck.generators.serialization.tensor import tensor
from epcheck.generators.sources import harvested

SMALL, LARGE = "small", "large"

NEWEST_OPSET = 20
"""The newest opset of which versions are taken: ONNX Runtime 1.17 reads it, so that many releases can be compared."""

FLOATS = ("float32", "float16")

DATA = "T"
"""In place of a dtype: that of the comparison."""

DRAWN = 1 << 20
"""Elements of an input that are drawn; a larger one repeats them: to draw and send gigabytes takes longer than to time
the node."""


@dataclass(frozen=True)
class TimedInput:
    """An input of a shape. dtype: by its numpy name, or DATA. parameter: it is an initializer. low, high: between which
    its values lie, high excluded for integers. values: themselves, in place of those."""

    shape: tuple[int, ...]
    dtype: str = DATA
    parameter: bool = False
    low: float = -1.0
    high: float = 1.0
    values: tuple[float, ...] | None = None


@dataclass(frozen=True)
class SpeedShape:
    """One node in one size. operator: its key. name: unique within the operator. outputs: how many it has. dtypes: in
    which it is compared. results: type constraint -> numpy dtype name of outputs whose dtype no input has."""

    operator: str
    name: str
    size: str
    inputs: tuple[TimedInput, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    outputs: int = 1
    dtypes: tuple[str, ...] = FLOATS
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TimedNode:
    """A node in a dtype. id: `MatMul-13/float32/square_4096`. shape: what it is made of, or a node of a model.
    elements: of all inputs."""

    id: str
    operator: str
    dtype: str
    size: str
    sizes: str
    elements: int
    shape: SpeedShape | HarvestedNode

    def build(self) -> tuple[bytes, dict[str, Array], dict[str, tuple[int, ...]]]:
        """Its model, serialized; the feeds, whose data comes from the id alone; and of those that stand for larger ones
        the shapes, to which their elements are repeated (as `numpy.resize` does)."""
        rng, shapes = random_source(self.id), {}
        if isinstance(self.shape, HarvestedNode):
            node = self.shape.node(rng)
            results = dict(zip(all_operators()[self.operator].varied, self.shape.dtypes, strict=False))
        else:
            node, results = _make_node(self.shape, self.dtype, rng), dict(self.shape.results)
            shapes = {
                operand.name: each.shape
                for operand, each in zip(node.inputs, self.shape.inputs, strict=True)
                if operand is not None and operand.value.shape != each.shape
            }
        return _make_model(node, results, shapes), graph.feeds(node, graph.INITIALIZER), shapes


def timed_nodes(folder: Path | None = None) -> Iterator[TimedNode]:
    """Every node of the table in every dtype, or those that `epcheck harvest` wrote into a folder. Raises
    HarvestError."""
    if folder is not None:
        found = {node.id: node for node in map(_of_harvested, harvested.read_nodes(folder))}
        yield from found.values()
        return
    for shape in SHAPES:
        version = _find_version(shape.operator)
        for dtype in shape.dtypes:
            sizes = ", ".join("x".join(map(str, each.shape)) or "scalar" for each in shape.inputs)
            elements = sum(int(np.prod(each.shape)) for each in shape.inputs)
            name = f"{shape.operator}-{version}/{dtype}/{shape.name}"
            yield TimedNode(name, shape.operator, dtype, shape.size, sizes, elements, shape)


def _of_harvested(node: HarvestedNode) -> TimedNode:
    dtype = "-".join(node.dtypes)
    first = "x".join(map(str, node.present[0].shape)) if node.present else ""
    sample = f"{harvested.PREFIX}{first or 'scalar'}_{digest(node)}"
    sizes = ", ".join("x".join(map(str, each.shape)) or "scalar" for each in node.present)
    name = f"{node.operator}-{node.since_version}/{dtype}/{sample}"
    return TimedNode(name, node.operator, dtype, "", sizes, sum(each.size for each in node.present), node)


@cache
def _find_version(operator: str) -> int:
    """The newest version that the oldest releases worth comparing know."""
    name, domain = split_name(operator)
    versions = schema.since_versions(name, domain)
    return max((version for version in versions if version <= NEWEST_OPSET), default=versions[0])


def _make_node(shape: SpeedShape, dtype: str, rng: np.random.Generator) -> Node:
    name, domain = split_name(shape.operator)
    operands = tuple(
        Operand(f"input_{place}", _draw(each, dtype, rng), each.parameter) for place, each in enumerate(shape.inputs)
    )
    outputs = tuple(f"output_{place}" for place in range(shape.outputs))
    return Node(name, domain, _find_version(shape.operator), operands, outputs, shape.attributes)


def _draw(each: TimedInput, dtype: str, rng: np.random.Generator) -> Array:
    """The input; DRAWN elements of a larger one that is no parameter."""
    kind = np.dtype(dtype if each.dtype == DATA else each.dtype)
    if each.values is not None:
        return np.array(each.values, kind).reshape(each.shape)
    is_larger = math.prod(each.shape) > DRAWN
    shape = (DRAWN,) if is_larger else each.shape
    if kind.kind == "b":
        drawn = rng.random(shape) < 0.5
    elif kind.kind in "iu":
        low = max(each.low, np.iinfo(kind).min)
        drawn = rng.integers(int(low), int(each.high), shape, kind if kind.itemsize > 1 else np.int64).astype(kind)
    else:
        drawn = (each.low + (each.high - each.low) * rng.random(shape, np.float32)).astype(kind)
    return np.resize(drawn, each.shape) if is_larger and each.parameter else drawn


def _make_model(node: Node, results: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """The model of the node alone. shapes: of inputs, where their values do not have them. Outputs have no shape: the
    runtime infers it."""
    types = {**results, **graph.type_bindings(node)}
    present = [operand for operand in node.inputs if operand is not None]
    names = [operand.name if operand else "" for operand in node.inputs]
    proto = graph.node_proto(node.op_type, names, node.outputs, "node", node.domain, node.attributes)
    opset = schema.opset_for(node.since_version, node.domain)
    ai_onnx = 17 if node.domain else opset
    model = helper.make_model(
        helper.make_graph(
            [proto],
            node.op_type,
            [graph.value_info(o.name, schema.dtype_name(o.value.dtype), shapes.get(o.name, o.value.shape))
             for o in present if not o.parameter],
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)
             for name, dtype in graph.output_types(node, types).items()],
        ),
        opset_imports=[helper.make_opsetid(*each) for each in {"": ai_onnx, node.domain: opset}.items()],
        ir_version=graph.ir_version_for(ai_onnx),
        producer_name="epcheck",
    )  # fmt: skip
    for operand in present:
        if operand.parameter:
            model.graph.initializer.add().ParseFromString(tensor(operand.value, operand.name))
    return bytes(model.SerializeToString())


def _data(*shape: int, low: float = -1.0, high: float = 1.0) -> TimedInput:
    return TimedInput(shape, low=low, high=high)


def _weight(*shape: int, dtype: str = DATA, low: float = -0.1, high: float = 0.1) -> TimedInput:
    return TimedInput(shape, dtype, True, low, high)


def _values(*values: float, dtype: str = "int64", shape: tuple[int, ...] | None = None) -> TimedInput:
    return TimedInput((len(values),) if shape is None else shape, dtype, True, values=values)


def _bytes(*shape: int) -> TimedInput:
    return TimedInput(shape, "uint8", low=0, high=256)


def _indices(*shape: int, below: int) -> TimedInput:
    return TimedInput(shape, "int64", low=0, high=below)


SINGLE_INPUT = (
    "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Sqrt", "Log", "Reciprocal", "Neg", "Abs", "Clip", "LeakyRelu",
    "HardSwish", "Softplus", "com.microsoft::Gelu", "com.microsoft::FastGelu",
)  # fmt: skip
POSITIVE = ("Sqrt", "Log", "Reciprocal", "Div", "Pow")
"""Elementwise operators; those whose inputs are 0.5 to 1, where others have -1 to 1."""


def _list_elementwise() -> Iterator[SpeedShape]:
    """All of 256 Ki and 16 Mi elements."""
    for size, name, count in ((SMALL, "256_ki", 1 << 18), (LARGE, "16_mi", 1 << 24)):
        for operator in (*SINGLE_INPUT, "Add", "Mul", "Sub", "Div", "Pow", "Max"):
            operand = _data(count, low=0.5 if operator in POSITIVE else -1.0)
            yield SpeedShape(operator, name, size, (operand,) * (1 if operator in SINGLE_INPUT else 2))
        yield SpeedShape("Add", f"bias_{name}", size, (_data(count // 1024, 1024), _weight(1024)))
        yield SpeedShape("Equal", name, size, (_data(count), _data(count)))
        whole = TimedInput((count,), low=-9, high=10)
        yield SpeedShape("Sign", name, size, (whole,), dtypes=("int64", "float32"))
        half = {"to": TensorProto.FLOAT16}
        yield SpeedShape("Cast", f"to_float16_{name}", size, (_data(count),), half, 1, ("float32",), {"T2": "float16"})
        yield SpeedShape("Where", name, size, (TimedInput((count,), "bool"), _data(count), _data(count)))


def _list_products() -> Iterator[SpeedShape]:
    matmul = "MatMul"
    yield SpeedShape(matmul, "square_256", SMALL, (_data(256, 256), _data(256, 256)))
    yield SpeedShape(matmul, "square_512", SMALL, (_data(512, 512), _weight(512, 512)))
    yield SpeedShape(matmul, "bert_128x768x768", SMALL, (_data(1, 128, 768), _weight(768, 768)))
    yield SpeedShape(matmul, "bert_scores", SMALL, (_data(1, 12, 128, 64), _data(1, 12, 64, 128)))
    yield SpeedShape(matmul, "square_4096", LARGE, (_data(4096, 4096), _data(4096, 4096)))
    yield SpeedShape(matmul, "llama_one_token", LARGE, (_data(1, 1, 4096), _weight(4096, 11008)))
    yield SpeedShape(matmul, "llama_512_tokens", LARGE, (_data(1, 512, 4096), _weight(4096, 11008)))
    yield SpeedShape(matmul, "llama_scores", LARGE, (_data(1, 32, 1024, 128), _data(1, 32, 128, 1024)))
    yield SpeedShape("Gemm", "resnet50_fc", SMALL, (_data(1, 2048), _weight(1000, 2048), _weight(1000)), {"transB": 1})
    yield SpeedShape("Gemm", "llama_512_tokens", LARGE, (_data(512, 4096), _weight(4096, 4096), _weight(4096)))
    for size, name, rows, wide in ((SMALL, "square_256", 256, 256), (LARGE, "llama_512_tokens", 512, 4096)):
        weights = _weight(wide, wide, dtype="uint8", low=0, high=256)
        yield SpeedShape("MatMulInteger", name, size, (_bytes(rows, wide), weights), dtypes=("uint8",))
    for size, tokens, wide in ((SMALL, 1, 1024), (LARGE, 1, 4096), (LARGE, 512, 4096)):
        blocks = wide // 32
        weights = _weight(wide, blocks, 16, dtype="uint8", low=0, high=256)
        inputs = (_data(1, tokens, wide), weights, _weight(wide * blocks, low=0.001, high=0.01))
        bits: Mapping[str, Attribute] = {"K": wide, "N": wide, "bits": 4, "block_size": 32}
        yield SpeedShape("com.microsoft::MatMulNBits", f"llama_{tokens}x{wide}_4_bits", size, inputs, bits)


AROUND = (1, 1, 1, 1)
CONVOLUTIONS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...], Mapping[str, Attribute]]] = {
    "resnet50_7x7_stem": ((3, 224, 224), (64, 3, 7, 7), {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
    "resnet50_1x1_256": ((256, 56, 56), (64, 256, 1, 1), {}),
    "resnet50_3x3_64": ((64, 56, 56), (64, 64, 3, 3), {"pads": AROUND}),
    "resnet50_3x3_512": ((512, 7, 7), (512, 512, 3, 3), {"pads": AROUND}),
    "mobilenet_depthwise_144": ((144, 56, 56), (144, 1, 3, 3), {"pads": AROUND, "group": 144}),
}
"""Name -> shape of an image, shape of the weights, attributes."""


def _list_convolutions() -> Iterator[SpeedShape]:
    """Of one image and of 32."""
    unet = (_data(2, 320, 64, 64), _weight(320, 320, 3, 3), _weight(320))
    yield SpeedShape("Conv", "unet_3x3_320", LARGE, unet, {"pads": AROUND})
    pool: Mapping[str, Attribute] = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": AROUND}
    empty, twice = _values(dtype="float32"), _values(1, 1, 2, 2, dtype="float32")
    ones, around_0 = _weight(64, low=0.5, high=1.0), _weight(64)
    for size, batch in ((SMALL, 1), (LARGE, 32)):
        for name, (image, weights, attributes) in CONVOLUTIONS.items():
            inputs = (_data(batch, *image), _weight(*weights), _weight(weights[0]))
            yield SpeedShape("Conv", f"{name}_batch_{batch}", size, inputs, attributes)
        up = (_data(batch, 64, 28, 28), _weight(64, 32, 2, 2))
        yield SpeedShape("ConvTranspose", f"up_28_batch_{batch}", size, up, {"strides": (2, 2)})
        data, resnet = _data(batch, 64, 56, 56), f"resnet50_batch_{batch}"
        yield SpeedShape("MaxPool", resnet, size, (_data(batch, 64, 112, 112),), pool)
        yield SpeedShape("AveragePool", resnet, size, (_data(batch, 64, 112, 112),), pool)
        yield SpeedShape("GlobalAveragePool", resnet, size, (_data(batch, 2048, 7, 7),))
        yield SpeedShape("BatchNormalization", resnet, size, (data, ones, around_0, around_0, ones))
        yield SpeedShape("InstanceNormalization", f"image_56_batch_{batch}", size, (data, ones, around_0))
        yield SpeedShape("Resize", f"linear_56_batch_{batch}", size, (data, empty, twice), {"mode": "linear"})
        grid = (_data(2 * batch, 3, 56, 56), _data(2 * batch, 56, 56, 2))
        yield SpeedShape("GridSample", f"linear_56_batch_{2 * batch}", size, grid)


def _list_transformers() -> Iterator[SpeedShape]:
    for size, batch, tokens, wide, heads, name in (
        (SMALL, 8, 128, 768, 12, "bert_batch_8"), (LARGE, 1, 4096, 4096, 32, "llama_4096_tokens"),
    ):  # fmt: skip
        hidden, split = _data(batch, tokens, wide), _data(batch, heads, tokens, wide // heads)
        scale, bias = _weight(wide, low=0.5, high=1.0), _weight(wide)
        yield SpeedShape("LayerNormalization", name, size, (hidden, scale, bias))
        yield SpeedShape("com.microsoft::SkipLayerNormalization", name, size, (hidden, hidden, scale, bias))
        yield SpeedShape("Softmax", name, size, (_data(batch, heads, min(tokens, 2048), min(tokens, 2048)),))
        attention = {"num_heads": heads}
        yield SpeedShape("com.microsoft::MultiHeadAttention", name, size, (hidden, hidden, hidden), attention)
        apart = _data(batch, tokens, heads, wide // heads)
        yield SpeedShape("Transpose", f"{name}_heads", size, (apart,), {"perm": (0, 2, 1, 3)})
        embedding = (_weight(30522, 768), _indices(batch, tokens, below=30522))
        yield SpeedShape("Gather", f"{name}_embedding", size, embedding)
        yield SpeedShape("Concat", f"{name}_cache", size, (split, _data(batch, heads, 1, wide // heads)), {"axis": 2})
        half = (split, _values(0), _values(wide // heads // 2), _values(3))
        yield SpeedShape("Slice", f"{name}_half", size, half)
        yield SpeedShape("ReduceMean", f"{name}_last_axis", size, (hidden, _values(-1)))
        words = _data(batch * tokens // 128, 50257)
        yield SpeedShape("TopK", f"gpt2_batch_{words.shape[0]}", size, (words, _values(50)), outputs=2)
        yield SpeedShape("ArgMax", f"gpt2_batch_{words.shape[0]}", size, (words,), {"axis": -1})
        yield SpeedShape("CumSum", name, size, (hidden, _values(1, shape=())))
        yield SpeedShape("Expand", name, size, (_data(1, 1, wide), _values(batch, tokens, wide)))
        yield SpeedShape("Pad", name, size, (hidden, _values(0, 1, 0, 0, 1, 0)))
        step = (_values(0.01, dtype="float32", shape=()), _values(128, dtype="uint8", shape=()))
        yield SpeedShape("QuantizeLinear", name, size, (hidden, *step), dtypes=("float32",))
        yield SpeedShape("DynamicQuantizeLinear", name, size, (hidden,), outputs=3, dtypes=("float32",))
        yield SpeedShape("DequantizeLinear", name, size, (_bytes(batch, tokens, wide), *step), dtypes=("uint8",))
    for operator in ("ReduceL1", "ReduceSum", "ReduceMax"):
        for size, batch in ((SMALL, 2), (LARGE, 128)):
            yield SpeedShape(operator, f"first_axis_{batch}x64x56x56", size, (_data(batch, 64, 56, 56), _values(0)))


def _list_recurrent() -> Iterator[SpeedShape]:
    """hidden: of one direction; gates: of GRU 3, of LSTM 4."""
    for operator, gates in (("GRU", 3), ("LSTM", 4)):
        for size, name, steps, batch, width, hidden in (
            (SMALL, "one_step", 1, 1, 256, 256), (SMALL, "16_steps", 16, 1, 256, 256),
            (SMALL, "one_step_of_8", 1, 1, 4, 8), (LARGE, "256_steps_batch_32", 256, 32, 512, 512),
        ):  # fmt: skip
            weights = (_weight(1, gates * hidden, width), _weight(1, gates * hidden, hidden),
                       _weight(1, 2 * gates * hidden))  # fmt: skip
            inputs = (_data(steps, batch, width), *weights)
            yield SpeedShape(operator, name, size, inputs, {"hidden_size": hidden}, outputs=2)


SHAPES = (
    *_list_elementwise(),
    *_list_products(),
    *_list_convolutions(),
    *_list_transformers(),
    *_list_recurrent(),
)
"""The table."""
