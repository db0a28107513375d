"""The operators of the suite: a folder for each family, with a module for each operator or group of operators."""
