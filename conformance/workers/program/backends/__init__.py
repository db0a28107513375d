"""What computes in a worker. A backend has

    facts() -> {str: str}                                     versions and whatever else its answers depend on
    trouble_with(sessions) -> str                             why its provider cannot be used; asked of ONNX Runtime's
    run(request, model, feeds) -> answer, outputs             one case: the session is created, run twice, dropped
    model(request, model, tensors, begin) -> answer, outputs  a whole model, whose session is kept; `begin` reports the
                                                              step that begins
    speed(request, model, feeds) -> answer, outputs           a block of timed runs; asked of ONNX Runtime's and of
                                                              callables
    registry(request) -> answer                               which kernels there are; asked of ONNX Runtime's
    contract(request, say) -> answer                          how the provider behaves in a process; asked of ONNX
                                                              Runtime's

request: the header of the frame; model: bytes; feeds, tensors, outputs: name -> numpy array; answer: what the header of
the answer says beyond `op`, `id` and `busy_s` (`protocol.py`).
"""

from __future__ import annotations

from typing import Any


def make(specification: str, plugin: Any = None, adapter: int = 0) -> Any:
    """The backend of `onnxruntime`, `reference`, `directml` or `python:module:function`. What it needs is imported
    here, after the prelude. plugin: the library that ONNX Runtime takes a provider from, as `plugin.py` has it.
    adapter: that of `directml`, its place in DXGI's list."""
    kind, _, function = specification.partition(":")
    if kind == "onnxruntime":
        from .onnxruntime import OnnxRuntimeBackend

        return OnnxRuntimeBackend(plugin)
    if kind == "reference":
        from .reference import ReferenceBackend

        return ReferenceBackend()
    if kind == "directml":
        from .directml.backend import DirectMLBackend

        return DirectMLBackend(adapter)
    from .function import FunctionBackend

    return FunctionBackend(function)
