"""The oracle of whole models on onnx's own tests of control flow, sequences and what is decided by comparisons."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from onnx.backend.test.case.node import _NodeTestCases
from onnx.backend.test.case.test_case import TestCase

from epcheck.models.feeds import feeds
from epcheck.models.oracle import oracle

MODULES = ("nonmaxsuppression", "if_", "loop", "scan", "sequence_map", "lstm", "stft", "unique", "qlinearconv", "gelu")
PREFIXES = ("test_nonmaxsuppression", "test_if", "test_loop", "test_scan9", "test_sequence_map", "test_lstm",
            "test_stft", "test_unique", "test_qlinearconv", "test_gelu")  # fmt: skip


def node_tests() -> list[TestCase]:
    """Those of a few modules: `collect_testcases` makes them all, which takes many times as long."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in MODULES:
            importlib.import_module(f"onnx.backend.test.case.node.{name}")
    return [case for case in _NodeTestCases if case.name.startswith(PREFIXES) and case.model is not None]


@pytest.mark.parametrize("test", node_tests(), ids=lambda test: test.name)
def test_onnx_node_tests_come_out(test: TestCase) -> None:
    """Outputs that onnx's authors wrote, in the tests' own precision: of a node, and of its functions expanded."""
    for inputs, expected in test.data_sets:
        names = [value.name for value in test.model.graph.input]
        found = oracle.evaluate(test.model, dict(zip(names, inputs, strict=True)))
        for value, wanted in zip(found.values.values(), expected, strict=True):
            compare(value, wanted, test.rtol)


def compare(value: feeds.Feed, wanted: feeds.Feed, rtol: float) -> None:
    if isinstance(wanted, list):
        assert len(value) == len(wanted)
        for element, expected in zip(value, wanted, strict=True):
            compare(element, expected, rtol)
    elif wanted is not None and wanted.dtype.kind in "fiub":
        np.testing.assert_allclose(np.asarray(value), wanted, rtol=rtol, atol=1e-6)
    else:
        assert np.array_equal(np.asarray(value), wanted)
