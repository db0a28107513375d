"""From outcomes to opinions, verdicts and records."""
