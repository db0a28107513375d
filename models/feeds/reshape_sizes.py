"""Sizes that a graph fixes although its inputs declare them dynamic: exporters that trace a module write the sizes of
their example into the shapes of Reshape nodes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import onnx

from epcheck.models.feeds import dims as dimensions
from epcheck.models.graph import skeleton
from epcheck.models.graph.skeleton import Shape

MOST = 64
"""Sizes that are tried for all dimensions together."""


def find(model: onnx.ModelProto, chosen: Collection[str] = ()) -> dict[str, int]:
    """Dynamic dimension -> the only size at which every Reshape whose shapes are known has as many elements as it is
    given; empty where the default sizes fit, or no other sizes do. chosen: dimensions that keep their size."""
    sizes = {name: size for name, size in dimensions.of_inputs(model).items() if name not in chosen}
    if not sizes or not any(node.op_type == "Reshape" for node in model.graph.node):
        return {}
    found: dict[str, int] = {}
    tries, unfit = 0, list(_list_unfit(model, found))
    while unfit:
        wanted = {size for shape in unfit for size in shape if size is not None and size > 1}
        options = [(name, size) for name in sizes if name not in found for size in sorted(wanted - {sizes[name]})]
        tries += len(options)
        if not options or tries > MOST:
            return {}
        left = {option: list(_list_unfit(model, {**found, option[0]: option[1]})) for option in options}
        best = min(left, key=lambda option: len(left[option]))
        if len(left[best]) >= len(unfit):
            return {}
        found[best[0]], unfit = best[1], left[best]
    return found


def _list_unfit(model: onnx.ModelProto, sizes: Mapping[str, int]) -> Iterator[Shape]:
    """The shapes of Reshape nodes that have another number of elements than what they are given."""
    resolved = dimensions.resolve(model, sizes)
    shapes: dict[str, Shape] = {}
    for name, tensor in dimensions.tensor_types(model):
        if not tensor.HasField("shape"):
            continue
        named = (dimensions.name_of(name, axis, dim) for axis, dim in enumerate(tensor.shape.dim))
        shapes[name] = tuple(resolved[n] if n else d.dim_value for n, d in zip(named, tensor.shape.dim, strict=True))
    inferred = skeleton.infer_shapes(skeleton.without_weights(model, shapes))
    for node in model.graph.node:
        if node.op_type == "Reshape" and node.output[0] in inferred:
            before, after = (inferred.get(name, (None,)) for name in (node.input[0], node.output[0]))
            counts = [math.prod(size for size in shape if size is not None) for shape in (before, after)]
            if None not in before and None not in after and counts[0] != counts[1]:
                yield after
