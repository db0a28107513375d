"""onnx's node tests in the newest operator versions that a provider claims: `--source onnx@dml`."""
