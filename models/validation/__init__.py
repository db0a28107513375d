"""Everything about one model, as data and as a page."""
