"""Commands about stored runs: report, diff, merge, store, trend."""
