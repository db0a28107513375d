"""Trend: what many runs show together: rates, what broke and when, flaky cases."""
