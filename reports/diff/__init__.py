"""Two runs compared: what changed, as data, page, Markdown, JSON and JUnit XML."""
