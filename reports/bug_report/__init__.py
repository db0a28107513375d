"""Bug reports for ONNX Runtime, in Markdown that its issue form takes."""
