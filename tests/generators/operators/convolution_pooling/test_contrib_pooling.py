"""NhwcMaxPool, MaxpoolWithMask and CropAndResize: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(value)) for name, value in inputs.items())
    node = Node(operator, "com.microsoft", 1, operands, ("Y",), attributes)
    return registry.operator_of(f"com.microsoft::{operator}").truth(node)


def output(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> Any:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return answer.outputs[0]


def test_a_pool_with_channels_last() -> None:
    x = np.array([[[1, 9], [4, 2], [3, 5]]], np.uint8)  # three places of two channels
    assert output("NhwcMaxPool", {"kernel_shape": (2,)}, x=x).value.tolist() == [[[4, 9], [4, 5]]]


def test_a_mask_leaves_out_the_end_of_a_row_of_each_channel() -> None:
    x = np.array([[[1, 2, 3, 9], [8, 1, 7, 6]]], np.float32)
    mask = np.array([[[1, 1, 1, 0], [1, 1, 0, 0]]], np.int32)
    found = output("MaxpoolWithMask", {"kernel_shape": (2,)}, X=x, M=mask)
    assert found.value.tolist()[0][0] == [2, 3, 3]
    assert found.value.tolist()[0][1][:2] == [8, 1]
    assert found.undefined.where.tolist() == [[[False] * 3, [False, False, True]]]


IMAGE = np.arange(15, dtype=np.float32).reshape(1, 1, 3, 5)


def crop(boxes: Any, size: tuple[int, int], images: Any = (0,), **attributes: Attribute) -> Truth:
    rois, of = np.array(boxes, np.float32), np.array(images, np.int32)
    return truth("CropAndResize", attributes, X=IMAGE, rois=rois, batch_indices=of, crop_size=np.array(size, np.int32))


def cropped(*arguments: Any, **attributes: Attribute) -> Any:
    answer = crop(*arguments, **attributes)
    assert isinstance(answer, Outputs), answer
    return answer.outputs[0].value[:, 0].tolist()


def test_corners_of_a_crop_are_those_of_its_box() -> None:
    assert cropped([[0, 0, 1, 1]], (2, 3)) == [[[0, 2, 4], [10, 12, 14]]]
    assert cropped([[1, 1, 0, 0]], (2, 2)) == [[[14, 10], [4, 0]]]
    assert cropped([[0, 0.125, 0.25, 0.25]], (2, 2)) == [[[0.5, 1], [3, 3.5]]]
    assert cropped([[0, 0, 1, 0.5]], (1, 1)) == [[[6]]]


def test_outside_is_extrapolated_and_nearest_picks() -> None:
    assert cropped([[0, -0.25, 0, 1.25]], (1, 4), extrapolation_value=7.0) == [[[7, 1, 3, 7]]]
    assert cropped([[0.25, 0.0, 0.75, 1]], (1, 2), mode="nearest") == [[[5, 9]]]
    assert cropped([[0.125, 0.1875, 0.375, 1]], (2, 1), mode="nearest") == [[[2], [7]]]


@pytest.mark.parametrize(
    ("arguments", "attributes", "why"),
    [
        (([[0, 0, 1, 1]], (0, 3)), {}, "crop_size must be"),
        (([[0, 0, 1, 1]], (2, 2), (1,)), {}, "batch_indices must be in [0, 0]"),
        (([[0, 0, 1, 1]], (2, 2)), {"mode": "cubic"}, "mode must be"),
    ],
)
def test_the_rules(arguments: tuple[Any, ...], attributes: dict[str, Attribute], why: str) -> None:
    answer = crop(*arguments, **attributes)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
