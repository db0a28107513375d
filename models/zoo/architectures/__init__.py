"""The architectures of the zoo, one file each."""
