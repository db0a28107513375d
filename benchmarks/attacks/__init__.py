"""Attacks on epcheck from outside, counted: hostile models, killed processes, damaged files. See README.md here."""
