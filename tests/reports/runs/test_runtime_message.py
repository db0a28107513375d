"""Messages of ONNX Runtime as they came from its releases, without what is put around them."""

from __future__ import annotations

import time

import pytest

from epcheck.reports.runtime_message import LONGEST_READ, readable

STATUS = "onnxruntime::common::Status"


CREATE = "[ONNXRuntimeError] : 1 : FAIL : Exception during initialization: "
RUN = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Slice node. Name:'a b' "
    "Status Message: "
)
CLIP = "relu_clip_fusion.cc:83 onnxruntime::FuseReluClip::Apply Unexpected data type for Clip 'min' input of 3"
PAD = "pad.cc:511 onnxruntime::PadImpl data_rank > 0 was false. Input tensor has no dimensions (a scalar)"


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        (
            f"{CREATE}/onnxruntime_src/onnxruntime/core/optimizer/relu_clip_fusion.cc:83 virtual {STATUS} "
            "onnxruntime::FuseReluClip::Apply(onnxruntime::Graph&, onnxruntime::RewriteRule::RewriteRuleEffect&, "
            "const onnxruntime::logging::Logger&) const Unexpected data type for Clip 'min' input of 3",
            CLIP,
        ),
        (f"{CREATE}{CLIP}", CLIP),
        (
            f"/onnxruntime_src/core/pad.cc:511 {STATUS} onnxruntime::PadImpl(OpKernelContext*, const Mode&, T) "
            "[with T = unsigned int; PadsVector = absl::X<long int, 10>] data_rank > 0 was false. Input tensor has no "
            "dimensions (a scalar)",
            PAD,
        ),
        (
            f"/a/lrn.cc:31 {STATUS} onnxruntime::LRN<T>::Compute(onnxruntime::OpKernelContext*) const [with T = float] "
            "X was false.",
            "lrn.cc:31 onnxruntime::LRN<T>::Compute X was false.",
        ),
        (
            f"dml refuses a valid node at run: {RUN}D:\\a\\_work\\1\\s\\MLOperatorAuthorImpl.cpp(2508)\\x.dll!0x1",
            "dml refuses a valid node at run: MLOperatorAuthorImpl.cpp(2508)\\x.dll!0x1",
        ),
        ("core/graph/model.cc:9 f failed (twice)", "model.cc:9 f failed (twice)"),
        ("two: a/x.cc:1 n::f(int) g b/y.h:2 void n::g() const h", "two: x.cc:1 n::f g y.h:2 n::g h"),
        ("shapes differ (a::b)", "shapes differ (a::b)"),
        ("x.cc:1 void n::f(int, std::vector<int", "x.cc:1 n::f"),
        ("", ""),
    ],
)
def test_only_the_place_and_what_is_wrong_are_left(message: str, plain: str) -> None:
    assert readable(message) == plain


@pytest.mark.parametrize("part", ["a/", "x.cc:1 ", "x.cc:1 n::f(", "a::b(", "a", "Load model from "])
def test_the_text_of_a_strangers_model_costs_little(part: str) -> None:
    started = time.perf_counter()
    assert len(readable(part * 1_000_000)) <= LONGEST_READ
    assert time.perf_counter() - started < 2
