"""The commands of `epcheck`, one module each."""
