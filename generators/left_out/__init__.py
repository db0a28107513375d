"""What of ONNX has no case, and why."""
