"""The family sequence: sequences, optionals and control flow."""
