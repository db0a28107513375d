"""Faults of convolutions, pools, unpooling and regions of interest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node
from tests.mutants.mutant import Mutant, attribute, inputs, misread, outputs

CONTRIB, DML = "com.microsoft::", "com.microsoft.dml::"


def _changed(node: Node, **attributes: Attribute) -> Node:
    return replace(node, attributes={**node.attributes, **attributes})


def _reversed(operator: str, name: str) -> Mutant:
    """The provider reads the values of a list from the last axis to the first."""

    def change(node: Node) -> Node:
        return _changed(node, **{name: tuple(reversed(node.integers(name, ())))}) if name in node.attributes else node

    return misread(operator, f"{name} is read backward", change)


def _pads_interleaved(operator: str) -> Mutant:
    """The provider reads [begin, end, begin, end] where [begin, begin, end, end] stands."""

    def change(node: Node) -> Node:
        pads = node.integers("pads", ())
        rank = len(pads) // 2
        mixed = tuple(pads[at // 2 + (at % 2) * rank] for at in range(2 * rank))
        return _changed(node, pads=mixed) if pads else node

    return misread(operator, "begins and ends of pads are taken for interleaved", change)


def _upper_for_lower(operator: str) -> Mutant:
    """The provider puts the odd padding at the end, always."""

    def change(node: Node) -> Node:
        is_lower = node.text("auto_pad", "") == "SAME_LOWER"
        return _changed(node, auto_pad="SAME_UPPER") if is_lower else node

    return misread(operator, "SAME_LOWER is taken for SAME_UPPER", change)


def _input(operator: str, name: str, what: str, change: Any) -> Mutant:
    return inputs(operator, what, lambda read, value: change(value) if read == name else value)


def _bias_left_out(operator: str) -> Mutant:
    return _input(operator, "B", "the bias is ignored", np.zeros_like)


def _nan_lost(operator: str) -> Mutant:
    return outputs(operator, "NaN comes out as 0", lambda y: np.nan_to_num(y, nan=0.0, posinf=np.inf, neginf=-np.inf))


def _infinity_saturates(operator: str) -> Mutant:
    return outputs(operator, "infinity comes out as the greatest number", lambda y: np.nan_to_num(y, nan=np.nan))


def _default(operator: str, name: str, value: Attribute) -> Mutant:
    """The provider has another default; what is given it reads."""
    return misread(
        operator,
        f"the default of {name} is {value}",
        lambda node: node if name in node.attributes else _changed(node, **{name: value}),
    )


def _flipped(weights: Array) -> Array:
    return np.flip(weights, tuple(range(2, weights.ndim)))


def _flipped_last(weights: Array) -> Array:
    return np.flip(weights, tuple(range(1, weights.ndim - 1)))


def _geometry(operator: str) -> tuple[Mutant, ...]:
    return (
        attribute(operator, "dilations", None),
        attribute(operator, "strides", None),
        attribute(operator, "pads", None),
        _reversed(operator, "strides"),
        _pads_interleaved(operator),
        _upper_for_lower(operator),
    )


def _convolution(operator: str) -> tuple[Mutant, ...]:
    flip = _flipped_last if operator.endswith("NhwcConv") else _flipped
    return (
        *_geometry(operator),
        _bias_left_out(operator),
        _input(operator, "W", "the kernel is flipped: a convolution instead of a correlation", flip),
    )


def _activation(operator: str) -> tuple[Mutant, ...]:
    def exchanged(node: Node) -> Node:
        names: Mapping[str, str] = {"Relu": "LeakyRelu", "Elu": "Selu", "Sigmoid": "HardSigmoid"}
        return _changed(node, fused_activation=names.get(node.text("fused_activation", ""), "Relu"))

    return (
        attribute(operator, "fused_alpha", None),
        attribute(operator, "fused_gamma", None),
        attribute(operator, "fused_beta", None),
        attribute(operator, "fused_activation", None, "the activation is not applied"),
        misread(operator, "another activation of the same kind is applied", exchanged),
    )


def _exchange_activation(node: Node) -> Node:
    """Tanh and Sigmoid, LeakyRelu and Relu are exchanged."""
    names: Mapping[str, str] = {"Tanh": "Sigmoid", "Sigmoid": "Tanh", "LeakyRelu": "Relu"}
    name = node.text("activation", "")
    if name not in names:
        return node
    return replace(node, attributes={**node.attributes, "activation": names[name], "activation_params": ()})


def _usual_parameters(node: Node) -> Node:
    usual: Mapping[str, tuple[float, ...]] = {"LeakyRelu": (0.01,), "Clip": (0.0, 6.0), "HardSigmoid": (0.2, 0.5)}
    name = node.text("activation", "")
    return _changed(node, activation_params=usual[name]) if name in usual else node


def _activate_before(node: Node) -> Node:
    """Only what is above 0 of Z survives: what Relu gives of a sum and of its parts differs."""
    return replace(
        node,
        inputs=tuple(o and (replace(o, value=np.maximum(o.value, 0)) if o.name == "Z" else o) for o in node.inputs),
    )


def _first_image(batch: Array) -> Array:
    return np.zeros_like(batch)


def _corners_exchanged(rois: Array) -> Array:
    """x and y of the corners, which are the last four values."""
    changed = rois.copy()
    changed[:, -4:] = rois[:, [-3, -4, -1, -2]]
    return changed


MUTANTS = (
    *_convolution("Conv"),
    _nan_lost("Conv"),
    _infinity_saturates("Conv"),
    attribute("Conv", "auto_pad", None),
    *_convolution(f"{CONTRIB}NhwcConv"),
    *_convolution(f"{DML}DmlFusedConv")[1:4],
    *_activation(f"{DML}DmlFusedConv"),
    *_convolution(f"{CONTRIB}FusedConv")[1:4],
    attribute(f"{CONTRIB}FusedConv", "activation", None, "the activation is not applied"),
    _input(f"{CONTRIB}FusedConv", "Z", "Z is not added", np.zeros_like),
    misread(f"{CONTRIB}FusedConv", "another activation of the same kind is applied", _exchange_activation),
    misread(f"{CONTRIB}FusedConv", "the parameters are the usual ones", _usual_parameters),
    misread(f"{CONTRIB}FusedConv", "Z is added after the activation", _activate_before),
    *_geometry("ConvInteger"),
    _input("ConvInteger", "x_zero_point", "x_zero_point is ignored", np.zeros_like),
    _input("ConvInteger", "w_zero_point", "w_zero_point is ignored", np.zeros_like),
    _input("ConvInteger", "w_zero_point", "the first w_zero_point counts for every channel",
           lambda zero: np.full_like(zero, zero.ravel()[0])),
    *_convolution("ConvTranspose"),
    attribute("ConvTranspose", "output_padding", None),
    attribute("ConvTranspose", "output_shape", None),
    *_convolution(f"{CONTRIB}ConvTransposeWithDynamicPads")[:2],
    _input(f"{CONTRIB}ConvTransposeWithDynamicPads", "Pads", "Pads is ignored", np.zeros_like),
    _input(f"{CONTRIB}ConvTransposeWithDynamicPads", "Pads", "begins and ends of Pads are exchanged",
           lambda pads: np.roll(pads, pads.size // 2)),
    *_convolution(f"{DML}DmlFusedConvTranspose")[1:4],
    *_activation(f"{DML}DmlFusedConvTranspose"),
    *_geometry("AveragePool"),
    attribute("AveragePool", "ceil_mode", None),
    attribute("AveragePool", "count_include_pad", None),
    _default("AveragePool", "count_include_pad", 1),
    _nan_lost("AveragePool"),
    *_geometry("LpPool"),
    attribute("LpPool", "p", None),
    attribute("LpPool", "p", 1),
    attribute("LpPool", "ceil_mode", None),
    *_geometry("MaxPool"),
    attribute("MaxPool", "ceil_mode", None),
    attribute("MaxPool", "storage_order", None),
    outputs("MaxPool", "the padding is 0 and may be the maximum",
            lambda y: y if y.dtype == np.int64 else np.maximum(y, y.dtype.type(0))),
    outputs("MaxPool", "Indices counts from 1", lambda y: y + 1 if y.dtype == np.int64 else y),
    outputs("MaxPool", "the lowest number stands for -infinity", np.nan_to_num),
    misread("GlobalAveragePool", "only the first row of the image is averaged",
            lambda node: replace(node, inputs=tuple(None if o is None else replace(o, value=o.value[:, :, :1])
                                                    for o in node.inputs))),
    _nan_lost("GlobalAveragePool"),
    attribute("GlobalLpPool", "p", None),
    _default("GlobalLpPool", "p", 1),
    _nan_lost("GlobalMaxPool"),
    outputs("GlobalMaxPool", "a maximum below 0 is 0", lambda y: np.maximum(y, y.dtype.type(0))),
    attribute("MaxUnpool", "pads", None),
    attribute("MaxUnpool", "strides", None),
    _input("MaxUnpool", "I", "the indices count from 1", lambda indices: np.maximum(indices - 1, 0)),
    _input("MaxUnpool", "I", "the indices are taken in ascending order", lambda i: np.sort(i.ravel()).reshape(i.shape)),
    *_geometry("Col2Im")[:5],
    _input("Col2Im", "block_shape", "block_shape is read backward", lambda block: block[::-1].copy()),
    attribute("RoiAlign", "sampling_ratio", 1),
    attribute("RoiAlign", "mode", None),
    attribute("RoiAlign", "spatial_scale", None),
    attribute("RoiAlign", "coordinate_transformation_mode", None),
    _input("RoiAlign", "batch_indices", "every region is of the first image", _first_image),
    _input("RoiAlign", "rois", "x and y are exchanged", _corners_exchanged),
    attribute("MaxRoiPool", "spatial_scale", None),
    _input("MaxRoiPool", "rois", "x and y are exchanged", _corners_exchanged),
    _input("MaxRoiPool", "rois", "the last row and column are left out",
           lambda rois: rois - np.array([0, 0, 0, 1, 1], rois.dtype)),
    *(mutant for mutant in _geometry(f"{CONTRIB}QLinearAveragePool") if "dilations" not in mutant.fault),
    attribute(f"{CONTRIB}QLinearAveragePool", "ceil_mode", None),
    attribute(f"{CONTRIB}QLinearAveragePool", "count_include_pad", None),
    attribute(f"{CONTRIB}QLinearAveragePool", "channels_last", None),
    _input(f"{CONTRIB}QLinearAveragePool", "x_zero_point", "x_zero_point is ignored", np.zeros_like),
    attribute(f"{CONTRIB}QLinearGlobalAveragePool", "channels_last", None),
    _input(f"{CONTRIB}QLinearGlobalAveragePool", "y_zero_point", "y_zero_point is ignored", np.zeros_like),
    _input(f"{CONTRIB}QLinearGlobalAveragePool", "y_scale", "y_scale is 1", np.ones_like),
)  # fmt: skip
