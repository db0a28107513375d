"""What earlier runs say of the cases of a run: what broke since then, what is repaired, and the history of a case."""
