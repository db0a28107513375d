"""A comparison of speed with every verdict, a note, and a target that says what a page must not believe."""

from __future__ import annotations

from epcheck.conformance.records.speed import (
    CREATE,
    EQUIVALENT,
    RUN,
    SLOWER,
    PhaseRatio,
    SpeedComparison,
    SpeedReport,
)


def compared(name: str, low: float, ratio: float, high: float, verdict: str) -> SpeedComparison:
    creation = PhaseRatio(CREATE, 2e-3, 3e-3, 1.5, 1.4, 1.6, SLOWER)
    run = PhaseRatio(RUN, 1e-3, 1e-3 * ratio, ratio, low, high, verdict)
    return SpeedComparison(f"Relu-14/float32/{name}", "Relu", "float32", "4", 20, 1.0, (creation, run))


REPORT = SpeedReport(
    "cpu@1.20.0", "cpu@1.21.0", {"A": {"onnxruntime": "1.20.0"}, "B": {"onnxruntime": "1.21.0"}}, 0.05, 1, (RUN,), 1.1,
    (
        compared("slow", 1.15, 1.18, 1.21, SLOWER),
        compared("same", 0.99, 1.0, 1.01, EQUIVALENT),
        compared("open", 1.03, 1.09, 1.13, SLOWER),
        SpeedComparison("Conv-11/float32/<b>", "Conv", "float32", "4", trouble="'x' does not take it: <script>"),
    ),
)  # fmt: skip
