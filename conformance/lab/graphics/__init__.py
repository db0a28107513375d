"""The graphics stack of the lab: vkd3d with shader model 6, and what makes DirectML work on it."""
