"""Attacks on epcheck from outside, counted: hostile models, signals, damaged files, full disks."""
