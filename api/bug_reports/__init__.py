"""Bug reports for ONNX Runtime: of the cases of a run, and of a model."""
