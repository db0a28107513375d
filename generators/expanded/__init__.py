"""onnx's tests of expanded functions: their bodies as graphs of several nodes, with outputs that onnx stores."""
