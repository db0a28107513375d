"""The family convolution_pooling: convolutions and pools."""
