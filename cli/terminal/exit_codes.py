"""Exit codes of every command."""

GOOD, FAILURES, CANNOT, INTERRUPTED = 0, 1, 2, 130
"""As it should be; conformance failures; bad input or it could not run; Ctrl-C, Ctrl-Break, SIGTERM or SIGHUP."""
