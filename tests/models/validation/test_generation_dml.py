"""Decoders decode on the real DirectML provider: right ones are silent, faults are named, and so is what the provider
gets wrong (docs/findings/attention.md): GroupQueryAttention never reads a past that is not in the buffer of its
present."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from epcheck.api import ValidateOptions, validate
from epcheck.conformance.targets.target import Target
from epcheck.models.validation.generation import CHUNKS, GREEDY, ONE_PASS, SHARED, STEPS, UNEQUAL, WINDOW
from epcheck.models.validation.validation import RIGHT, Validation
from tests.models.decoders import group_query_decoder, ignore_padding, plain_decoder, skip_a_position

pytestmark = pytest.mark.skipif(sys.platform not in ("linux", "win32"), reason="DirectML is for Windows and the lab")

SILENT = {**dict.fromkeys((ONE_PASS, STEPS, CHUNKS, UNEQUAL, GREEDY), "right"), SHARED: "left out"}


def decode(path: Path, model: onnx.ModelProto, dml: Target) -> Validation:
    onnx.save(model, path / "model.onnx")
    options = ValidateOptions((path / "model.onnx",), (dml,), generate=6, advice=False, culprit=False)
    return validate(options).validation


def results(found: Validation) -> dict[str, str]:
    assert found.generation is not None
    return {mode.name: mode.result for mode in found.generation.modes}


@pytest.mark.parametrize(("dtype", "window"), [("float32", 0), ("float16", 12)])
def test_a_right_decoder_of_plain_operators_is_silent(tmp_path: Path, dml: Target, dtype: str, window: int) -> None:
    found = decode(tmp_path, plain_decoder(dtype, window), dml)
    assert (found.status, results(found)) == (RIGHT, SILENT)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (skip_a_position, (STEPS, CHUNKS, UNEQUAL, GREEDY)),
        (ignore_padding, (UNEQUAL,)),
    ],
)
def test_a_fault_of_the_model_is_named_by_its_mode(
    tmp_path: Path, dml: Target, change: Callable[[onnx.ModelProto], None], wrong: tuple[str, ...]
) -> None:
    model = plain_decoder()
    change(model)
    found = decode(tmp_path, model, dml)
    assert results(found) == {**SILENT, **dict.fromkeys(wrong, "WRONG")}
    assert found.generation is not None
    assert {mode.fault.is_of_model for mode in found.generation.modes if mode.fault} == {True}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_group_query_attention_needs_past_and_present_in_one_buffer(tmp_path: Path, dml: Target, dtype: str) -> None:
    found = decode(tmp_path, group_query_decoder(dtype, rotates=False), dml)
    right, wrong = (ONE_PASS, SHARED, GREEDY), (STEPS, CHUNKS, UNEQUAL)
    assert results(found) == {**dict.fromkeys(right, "right"), **dict.fromkeys(wrong, "WRONG")}
    assert found.generation is not None
    ((mode, words),) = found.generation.faults
    assert (mode.name, mode.fault and mode.fault.is_of_model) == (STEPS, False)
    assert words.startswith(f"right {ONE_PASS}, {SHARED}, {GREEDY}; wrong {STEPS} from step 1 with a cache of 8: ")


def test_a_window_that_the_provider_ignores_is_named(tmp_path: Path, dml: Target) -> None:
    found = decode(tmp_path, group_query_decoder(window=10, rotates=False), dml)
    assert results(found)[WINDOW] == "WRONG"
