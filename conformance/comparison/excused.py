"""The tighter reading of an output that is right: elements that only a published floor accepts.

A bound is a number of ULP and a floor, an absolute difference that is accepted as well. A floor that is derived from
the computation itself (`bounds.HIGHAM`) is what any order of summation may be off by. A published one is a licence: a
shader's sine may be off by 0.0008, which is millions of ULP near zero, and a denormal result may be zero. An element
that only such a licence makes right is right, and worth a remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from epcheck.conformance.comparison import blocks
from epcheck.conformance.comparison.bounds import allowance
from epcheck.conformance.comparison.ulp import ulp_error
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.opinion import Excused
from epcheck.generators.array import Array
from epcheck.generators.bounds.bounds import DENORMALS, OPENCL, WEBNN
from epcheck.generators.bounds.elementary import SINCOS, VULKAN
from epcheck.generators.citation import Citation, CitationKind, Citations
from epcheck.generators.truth import Output, Outputs, Selection, Ulp

FAR = 4.0
"""How many times the bound in ULP an element is off at least that is worth a remark: the bounds are those of a full
profile of OpenCL C, and other published tables of the same functions differ from it by factors of 2 to 4."""

FLUSHED = DENORMALS.add_remark("denormal results may be zero")

TABLES = (VULKAN.key, SINCOS.key)
"""Whose floors are what an instruction of a shader may be off by."""

ERF = (OPENCL.key, WEBNN.key)
"""What a bound cites that has WebNN's floor, which is that of erf."""


def find_excused(truth: Outputs | Selection, got: Mapping[str, Array], known: Accuracy | None) -> tuple[Excused, ...]:
    """What of right outputs only published floors accept, an entry for each output and floor.

    known: what `accuracy.measure_accuracy` says of the outputs; None where nothing has a bound in ULP.
    """
    if known is None or isinstance(truth, Selection):
        return ()
    return tuple(
        entry
        for output in truth.outputs
        if isinstance(output.bound, Ulp) and known.max_ulp > FAR * output.bound.bound
        for entry in _of_output(output, output.bound, got[output.name])
    )


def published_floor(citations: Citations) -> Citation | None:
    """Who publishes the floor of a bound that cites these; None where it is derived or measured."""
    first, last = citations[0], citations[-1]
    is_published = last.key in TABLES or tuple(each.key for each in citations) == ERF
    is_derived = any(each.kind == CitationKind.DERIVED for each in citations)
    return last if is_published and not is_derived and first.kind != CitationKind.MEASURED else None


def _of_output(output: Output, bound: Ulp, got: Array) -> Iterator[Excused]:
    """The elements far beyond the ULP, those below the smallest normal number apart from the others."""
    exact = output.value if output.exact is None else output.exact
    tiny = float(np.finfo(output.value.dtype).tiny) if output.value.dtype.kind == "f" else 0.0
    entries: dict[Citation, Excused] = {}
    for start, (actual, exactly, floors) in blocks.read(got, exact, allowance(bound)):
        far = ulp_error(exactly, actual) > max(FAR * bound.bound, 0.5)
        is_denormal = (np.abs(exactly) < tiny) & (floors <= tiny)
        for floor, where in ((FLUSHED, far & is_denormal), (published_floor(bound.citations), far & (floors > tiny))):
            if floor is not None and where.any():
                entry = _entry(
                    output, bound, floor, start, where, (actual, exactly, np.broadcast_to(floors, far.shape))
                )
                entries[floor] = _join_excused(entries.get(floor), entry)
    yield from entries.values()


def _entry(
    output: Output, bound: Ulp, floor: Citation, start: int, where: Array, block: tuple[Array, Array, Array]
) -> Excused:
    """The elements of a block that a floor accepts, which starts at a flat index. block: got, exact and the floors."""
    at = np.flatnonzero(where)
    got, exact, floors = (part[at] for part in block)
    errors = ulp_error(exact, got)
    worst = int(errors.argmax())
    return Excused(
        output=output.name,
        elements=int(at.size),
        total=output.value.size,
        max_ulp=float(errors[worst]),
        bound=float(bound.bound),
        floor=floor.text,
        allowed=float(floors[worst]),
        at=blocks.index(start + int(at[worst]), output.value.shape),
        expected=str(exact[worst]),
        got=str(got[worst]),
    )


def _join_excused(first: Excused | None, second: Excused) -> Excused:
    """Both of one output and floor: the elements of both, and the worst of them."""
    if first is None:
        return second
    worst = max(first, second, key=lambda entry: entry.max_ulp)
    return Excused(**{**vars(worst), "elements": first.elements + second.elements})


def in_words(entries: tuple[Excused, ...]) -> str:
    """`Y: 3 of 64 elements are up to 5,210 ULP off, where 4 ULP are asked; the floor that applies is ...`."""
    return "; ".join(
        f"{e.output}: {e.elements:,} of {e.total:,} elements are up to {e.max_ulp:,.0f} ULP from the truth, beyond the "
        f"{e.bound:g} ULP allowed, but within {e.allowed:.3g} absolute ({e.floor})"
        for e in entries
    )
