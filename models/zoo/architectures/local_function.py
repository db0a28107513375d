"""MLP-Mixer made of local functions, as dynamo's exporter keeps the modules of a model: one calls another, and has an
attribute."""

from __future__ import annotations

import onnx
from onnx import helper

from epcheck.models.zoo.architecture import Architecture
from epcheck.models.zoo.graph_builder import GraphBuilder, fan_in_std

DOMAIN = "epcheck.layers"
TOKENS, WIDTH, LAYERS, CLASSES = 16, 24, 3, 5
OPSET = 18


def _function(
    name: str, inputs: list[str], nodes: list[onnx.NodeProto], attributes: list[str] | None = None
) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_function(DOMAIN, name, inputs, ["y"], nodes, imports, attributes or [])


def _root_mean_square() -> onnx.FunctionProto:
    """x / sqrt(mean(x^2) + epsilon) * scale over the last dimension."""
    epsilon = helper.make_node("Constant", [], ["epsilon"])
    epsilon.attribute.append(
        onnx.AttributeProto(name="value_float", ref_attr_name="epsilon", type=onnx.AttributeProto.FLOAT)
    )
    nodes = [
        epsilon,
        helper.make_node("Constant", [], ["last"], value_ints=[-1]),
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("ReduceMean", ["square", "last"], ["mean"], keepdims=1),
        helper.make_node("Add", ["mean", "epsilon"], ["sum"]),
        helper.make_node("Sqrt", ["sum"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["normalised"]),
        helper.make_node("Mul", ["normalised", "scale"], ["y"]),
    ]
    return _function("RootMeanSquare", ["x", "scale"], nodes, ["epsilon"])


def _mix() -> onnx.FunctionProto:
    """x + W2 (silu(W1 norm(x))) over the last dimension."""
    nodes = [
        helper.make_node("RootMeanSquare", ["x", "scale"], ["normalised"], domain=DOMAIN, epsilon=1e-5),
        helper.make_node("MatMul", ["normalised", "inner"], ["hidden"]),
        helper.make_node("Sigmoid", ["hidden"], ["gate"]),
        helper.make_node("Mul", ["hidden", "gate"], ["active"]),
        helper.make_node("MatMul", ["active", "outer"], ["update"]),
        helper.make_node("Add", ["x", "update"], ["y"]),
    ]
    return _function("Mix", ["x", "scale", "inner", "outer"], nodes)


def _add_mix(net: GraphBuilder, x: str, width: int) -> str:
    scale = net.weight("scale", (width,), 0.1, mean=1.0)
    inner = net.weight("inner", (width, 2 * width), fan_in_std(width))
    return net.add("Mix", x, scale, inner, net.weight("outer", (2 * width, width), fan_in_std(width)), domain=DOMAIN)


def build() -> onnx.ModelProto:
    """[batch, 16, 24] -> [batch, 5]."""
    net = GraphBuilder("local_function", opset=OPSET, domains=(DOMAIN,))
    x = net.input("tokens", "float32", ("batch", TOKENS, WIDTH))
    for index in range(LAYERS):
        with net.scope(f"tokens{index}"):
            turned = _add_mix(net, net.add("Transpose", x, perm=[0, 2, 1]), TOKENS)
            x = net.add("Transpose", turned, perm=[0, 2, 1])
        with net.scope(f"channels{index}"):
            x = _add_mix(net, x, WIDTH)
    pooled = net.add("ReduceMean", x, net.constant([1]), keepdims=0)
    net.add("Gemm", pooled, net.weight("head.weight", (WIDTH, CLASSES), fan_in_std(WIDTH, 3.0)), named="logits")
    net.output("logits", "float32", ("batch", CLASSES))
    return net.model((_root_mean_square(), _mix()))


ARCHITECTURES = (
    Architecture("local_function", "MLP-Mixer made of local functions that call each other", build, {"batch": (1, 3)}),
)
