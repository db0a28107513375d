"""Options of the calls that select or run cases, declared once."""

from __future__ import annotations

from typing import Annotated

from epcheck.api.option import Option
from epcheck.conformance.targets.variants import Axis, parse_axes
from epcheck.generators.suite import Source, Sources, sources_of

CaseSource = Annotated[
    Sources,
    Option(
        "Where cases come from: suite, onnx (its node tests; onnx@dml: in versions that dml claims), or a folder of "
        "`epcheck harvest`; repeat for more.",
        flags=("--source",),
        metavar="suite|onnx|onnx@PROVIDER|FOLDER",
        default=Source.SUITE.value,
        parse=sources_of,
        many=True,
    ),
]

Variants = Annotated[
    tuple[Axis, ...],
    Option(
        "Also run each case with another: level, io_binding, context, precision, packing.",
        flags=("--variants",),
        metavar="AXIS,...",
        parse=parse_axes,
        many=True,
    ),
]
