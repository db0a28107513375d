"""The family quantized: quantized operators."""
