"""The family signal: signal processing."""
