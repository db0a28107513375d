"""Cases of four dimensions in every dtype."""
