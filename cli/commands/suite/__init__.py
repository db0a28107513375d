"""Commands about the suite: listing, running, reproducing."""
