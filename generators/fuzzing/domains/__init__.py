"""Where the oracles of the operators end: rules that hold for every node, and the further ones of each family."""
