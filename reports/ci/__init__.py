"""A run as a service of continuous integration shows it: annotations, the summary of a step, a badge."""
