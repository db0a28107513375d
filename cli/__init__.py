"""The command line and the pytest plugin: they parse, show, and delegate to `epcheck.api`."""
