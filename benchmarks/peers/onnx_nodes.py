"""ONNX's own backend tests on ONNX Runtime, as ONNX's documentation shows; run by pytest as a row of the table."""

from __future__ import annotations

import onnx.backend.test
import onnxruntime.backend

backend_test = onnx.backend.test.BackendTest(onnxruntime.backend, __name__)
globals().update(backend_test.test_cases)
