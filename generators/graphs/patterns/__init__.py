"""The fixed graphs of the suite, by what they are aimed at."""
