"""From a case to what a worker is sent."""
