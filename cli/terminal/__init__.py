"""What the terminal shows: progress, summaries, errors; and the exit codes."""
