"""The one exception of this package."""


class LabError(Exception):
    """The lab cannot do what was asked. Its text is one sentence: what is missing or wrong, and what to do about it."""
