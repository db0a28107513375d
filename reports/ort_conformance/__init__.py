"""A run in the vocabulary of ONNX Runtime's plan for provider conformance: one result for every record."""
