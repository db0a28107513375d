"""Commands about runs that are stored."""
