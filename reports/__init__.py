"""The store and the reports made from it."""
