"""Descriptions of the family quantized: quantized operators."""
