"""What a model's file says of itself."""
