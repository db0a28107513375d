"""Many models on many targets: what each has to keep, and one report of all."""
