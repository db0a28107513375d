"""The family signal: DFT and STFT."""
