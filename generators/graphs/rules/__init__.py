"""The rewrite rules of optimisers and providers whose graphs are cases, by what they rewrite."""
