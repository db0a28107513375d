"""What the operators of a family share."""
