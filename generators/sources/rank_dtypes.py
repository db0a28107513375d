"""The cases of no, three and four dimensions in every dtype: their samples' names begin with `typed_`.

The samples of an operator vary ranks in its first dtype; in the others most have one dimension or two. A kernel that
has a path of its own for a dtype and for scalars, or for images, is met by neither. So of each operator with a sample
of one of these ranks there is a case of that in every other dtype that has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph
from epcheck.generators.case import BuiltCase, Case, CaseContext, Sample
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.operator import Operator, build_case, random_source

SOURCE = "rank_dtypes"
KIND = "typed"
KINDS = {KIND: "no, three and four dimensions in every dtype"}
"""What these cases are called -> what they are aimed at."""

RANKS = (4, 3, 0)


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """Those of each rank, in the version that is tried in every way."""
    for rank in () if operator.without_rank_dtypes else RANKS:
        yield from _list_cases(operator, rank)


def _list_cases(operator: Operator[Any], rank: int) -> Iterator[Case]:
    version = newest_claimed_version(operator.name, operator.domain)
    samples = [sample for sample in operator.samples() if sample.rank == rank]
    samples.sort(key=lambda sample: sample.refused)  # those come last
    every = tuple(operator.dtypes(version)) if samples else ()
    known = [(sample, dtypes) for dtypes in every for sample in samples if operator.bindings(sample, version, dtypes)]
    if not known:
        return
    sample = known[0][0]
    for dtypes in every:
        is_open = operator.gives_fractions and np.dtype(dtypes[0]).kind in "iu"
        if not is_open and dtypes not in {own for _, own in known}:
            name = f"{KIND}_{sample.name}"
            builder = partial(_build, operator, sample)
            yield Case(
                operator.name,
                operator.domain,
                version,
                "-".join(dtypes),
                name,
                graph.INITIALIZER,
                builder,
                kind=KIND,
                source=SOURCE,
            )


def _build(operator: Operator[Any], sample: Sample, case: Case) -> BuiltCase:
    dtypes = tuple(np.dtype(name) for name in case.dtype.split("-"))
    node = operator.node(sample, CaseContext(case.since_version, dtypes, random_source(case.id)))
    with np.errstate(all="ignore"):
        return build_case(operator, node, operator.truth(node), case)
