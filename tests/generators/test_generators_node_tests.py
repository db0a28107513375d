"""The oracles against the node tests of the installed onnx package: inputs and outputs that its authors wrote."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from built_suite import Array, node_of, same_bits, true_outputs
from onnx.backend.test.case.base import Base

MODULES = {"slice": ("Slice", 13), "topk": ("TopK", 24), "qlinearconv": ("QLinearConv", 10)}

CaseOfOnnx = tuple[onnx.NodeProto, list[Array], list[Array]]


def node_tests(module_name: str) -> Iterator[tuple[str, CaseOfOnnx]]:
    """(name, node, inputs, outputs) of every test that a module of onnx.backend.test.case.node exports."""
    module: Any = importlib.import_module(f"onnx.backend.test.case.node.{module_name}")
    found: list[tuple[str, CaseOfOnnx]] = []

    def expect(node: onnx.NodeProto, inputs: list[Array], outputs: list[Array], name: str, **_: Any) -> None:
        found.append((name, (node, [np.asarray(i) for i in inputs], [np.asarray(o) for o in outputs])))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "expect", expect)
        (exporter,) = (c for c in vars(module).values() if isinstance(c, type) and Base in c.__bases__)
        for attribute in vars(exporter):
            if attribute.startswith("export"):
                getattr(exporter, attribute)()
    yield from found


TESTS = {name: (*MODULES[module], test) for module in MODULES for name, test in node_tests(module)}


def test_the_installed_onnx_has_the_tests_that_are_known() -> None:
    assert {
        "test_slice", "test_slice_neg", "test_slice_start_out_of_bounds", "test_slice_end_out_of_bounds",
        "test_slice_default_axes", "test_slice_default_steps", "test_slice_neg_steps", "test_slice_negative_axes",
        "test_top_k", "test_top_k_smallest", "test_top_k_negative_axis", "test_qlinearconv",
    } <= TESTS.keys()  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_the_oracle_gives_the_output_that_onnx_stores(name: str) -> None:
    operator, since_version, (proto, inputs, outputs) = TESTS[name]
    given = iter(inputs)
    values = [next(given) if input_name else None for input_name in proto.input]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
    got = true_outputs(node_of(operator, since_version, values, **attributes))
    assert len(got) == len(outputs)
    for output, expected in zip(got, outputs, strict=True):
        assert same_bits(output, expected), f"{name}: {output} instead of {expected}"
