"""What quantisation does to a model: scales, zero points and axes of its QuantizeLinear and DequantizeLinear nodes."""
