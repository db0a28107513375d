"""Fuzzing a provider: rounds of drawn nodes, faults made small, told apart by their cause, and kept."""
