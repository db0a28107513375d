"""DirectML called without ONNX Runtime."""
