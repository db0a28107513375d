"""Commands about the suite: run, nightly, list, coverage, claims, expect, repro, replay, directml."""
