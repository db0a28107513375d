"""The releases of a provider's package, and the one in which what a case does changes."""
