"""Commands about the suite: run, nightly, show, list, coverage, claims, expect, repro, replay, directml."""
