"""`epcheck COMMAND --help` without the command's imports, which take a second."""
