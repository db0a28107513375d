"""Certificates: what a run and the observations of a provider's workers say of it, as a folder that anybody checks."""
