"""What a preparer runs: the backend `rows` of its worker. Its process imports the whole suite before it is forked, and
so once for all preparers: a case that it is sent names its operator, and any may come."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import numpy as np
from threadpoolctl import threadpool_limits

from epcheck.conformance.cache.row_groups import pack
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import UnbuiltCase
from epcheck.generators import registry
from epcheck.generators.array import Array

registry.load_operators()

threadpool_limits(1, user_api="blas")  # further threads spin for milliseconds after each small product


def rows(model: bytes, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """model: cases, pickled by the process of the run; the output: their rows as MessagePack, or a mapping that says
    why there is none."""
    del feeds
    done = [prepared_case.prepare(case) for case in pickle.loads(model)]
    written = [{"why": p.why, "log": p.log} if isinstance(p, UnbuiltCase) else prepared_case.to_row(p) for p in done]
    return {"rows": np.frombuffer(pack(written), np.uint8)}
