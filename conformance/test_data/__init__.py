"""Models and tensors on disk, in the layout of ONNX's own test data."""
