"""What several operators share: element-wise rules with broadcasting, data movement, fused activations."""
