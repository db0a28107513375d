"""What execution providers claim to support."""
