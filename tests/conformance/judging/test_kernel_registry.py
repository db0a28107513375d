"""The kernels of a provider: as a worker reads them from the runtime's registry, and from the words in a library."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as native

from epcheck.conformance.judging import kernel_registry
from epcheck.conformance.judging.kernel_registry import RegisteredKernel, read_kernel_registry
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import TargetError
from epcheck.conformance.workers.program.backends import kernel_registry as program


def test_a_worker_lists_every_kernel_and_schema_of_its_runtime() -> None:
    found = read_kernel_registry(resolve("cpu", {}))
    own: list[Any] = [k for k in native.get_all_opkernel_def() if k.provider == "CPUExecutionProvider"]
    assert len(found.kernels) == len(own)
    assert {(k.domain, k.operator) for k in found.kernels} == {(k.domain, k.op_name) for k in own}
    assert RegisteredKernel("", "Abs", (6, 12), {"T": ("tensor(float)",)}) in found.kernels
    assert RegisteredKernel("com.microsoft", "MatMulInteger16", (1, None), MATMUL_INTEGER_16) in found.kernels
    assert ("com.microsoft", "PagedAttention") in found.schemas
    assert (found.source, found.unknown) == ("its kernel registry", frozenset())
    assert found.facts["onnxruntime"] == onnxruntime.__version__


MATMUL_INTEGER_16 = {"T1": ("tensor(int16)",), "T2": ("tensor(int16)",), "T3": ("tensor(int32)",)}


AZURE = "AzureExecutionProvider"


@pytest.mark.skipif(AZURE not in onnxruntime.get_available_providers(), reason="this ONNX Runtime is without it")
def test_a_provider_without_registry_and_library_is_refused_with_the_reason() -> None:
    with pytest.raises(TargetError, match=f"does not list the kernels of {AZURE}, which has no library"):
        read_kernel_registry(replace(resolve("cpu", {}), provider=AZURE))


def test_a_target_without_a_provider_is_refused() -> None:
    with pytest.raises(TargetError, match="target 'reference' has no execution provider"):
        read_kernel_registry(resolve("reference", {}))


def test_a_library_is_searched_for_whole_words_and_beginnings_in_instructions(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    instruction = b"\x48\xb8QLinearM\x48\x89\x85"
    path.write_bytes(b"\0QMoE\0x MatMulNBits zero\0FusedConv\0\x07Gelu\0com.microsoft.MoE\0" + instruction + b"\0Q\0")
    assert program.read_words(path) == (["FusedConv", "QMoE", "com.microsoft.MoE"], ["QLinearM"])


def test_what_a_library_cannot_tell_is_unknown() -> None:
    schemas = [
        ("", "Conv"),
        ("", "Pad"),
        ("", "Softmax"),
        ("com.microsoft", "FusedConv"),
        ("com.microsoft", "MatMulBnb4"),
        ("com.microsoft", "Pad"),
        ("com.microsoft", "PagedAttention"),
        ("com.microsoft", "QLinearMul"),
        ("com.microsoft", "QOrderedLayerNormalization"),
    ]
    words = ["FusedConv", "Pad", "SparsePagedAttention"]
    answer = kernel_registry._Answer("done", schemas=schemas, library="ep.so", words=words, beginnings=["QLinearM"])
    found = kernel_registry._search_library(answer, {})
    assert found.kernels == (RegisteredKernel("", "Pad"), RegisteredKernel("com.microsoft", "FusedConv"))
    assert found.unknown == {
        ("", "Conv"),  # the end of FusedConv
        ("", "Softmax"),  # shorter than what one instruction holds
        ("com.microsoft", "Pad"),  # the word may be ai.onnx's
        ("com.microsoft", "PagedAttention"),  # the end of SparsePagedAttention
        ("com.microsoft", "QLinearMul"),  # an instruction begins so
    }
    assert found.source == "the words in ep.so"


def test_without_beginnings_every_name_that_a_string_holds_itself_is_unknown() -> None:
    schemas = [("com.microsoft", "MatMulBnb4"), ("com.microsoft", "GroupQueryAttention")]
    answer = kernel_registry._Answer("done", schemas=schemas, library="ep.so", words=["Relu"])
    assert kernel_registry._search_library(answer, {}).unknown == {("com.microsoft", "MatMulBnb4")}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="instructions are those of x86-64")
def test_the_runtime_s_own_library_names_its_kernels() -> None:
    (library,) = Path(native.__file__).parent.glob("onnxruntime_pybind11_state*")
    words, beginnings = program.read_words(library)
    answer = kernel_registry._Answer("done", schemas=[], words=words, beginnings=beginnings, library=library.name)
    names = {k.op_name for k in native.get_all_opkernel_def() if k.domain == "com.microsoft"}
    answer.schemas = [("com.microsoft", name) for name in sorted(names)]
    found = kernel_registry._search_library(answer, {})
    assert names - {kernel.operator for kernel in found.kernels} - {name for _, name in found.unknown} == set()
