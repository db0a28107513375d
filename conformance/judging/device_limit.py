"""Limits of a device: what a provider implements and the adapter of this machine lacks."""

from __future__ import annotations

import re

from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion

_LACKING = re.compile(r"requires (?P<feature>\S+) but the device does not support it")
"""How WebGPU's provider words it: the feature is `f16` on an adapter without the WebGPU feature `shader-f16`."""


def feature_of(message: str) -> str:
    """The feature that the device lacks, where that is what a message says; otherwise empty."""
    found = _LACKING.search(message)
    return found["feature"] if found else ""


def lacking_feature(candidate: Opinion) -> str:
    """The feature that the device lacks, where that is why the candidate refuses a node; otherwise empty."""
    return feature_of(candidate.message) if candidate.status == terms.REFUSED else ""


_DTYPES = {"f16": "float16"}
"""Feature -> the numpy dtype that no node can have without it."""


def lacking_dtype(candidate: Opinion) -> str:
    """The dtype that the device lacks, where that is why the candidate refuses a node; otherwise empty."""
    return _DTYPES.get(lacking_feature(candidate), "")
