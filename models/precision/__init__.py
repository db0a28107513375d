"""What a narrow floating-point type does to a model, and which nodes need a wider one."""
