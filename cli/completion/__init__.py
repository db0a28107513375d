"""What a shell offers when a person presses Tab; the answer to it imports the standard library alone."""
