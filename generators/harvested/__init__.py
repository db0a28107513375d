"""Nodes of users' models as cases: `epcheck harvest` writes them into a folder, `--source FOLDER` runs them."""
