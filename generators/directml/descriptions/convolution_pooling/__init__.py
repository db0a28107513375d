"""Descriptions of the family convolution_pooling: convolutions and pools."""
