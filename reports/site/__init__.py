"""The site of a store: which provider computes what, for every provider, release and adapter that its runs were of."""
