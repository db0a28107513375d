"""What the declaration of an operator is made of."""
