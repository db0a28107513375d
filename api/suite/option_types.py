"""Options of the calls that select or run cases, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from epcheck.api.option import JUDGE, MACHINE, SELECT, Option
from epcheck.conformance.targets.variants import Axis, UsedCases, parse_axes
from epcheck.generators.suite import Source, Sources, sources_of

Candidates = Annotated[
    tuple[str, ...],
    Option(
        "Candidate; repeat to compare several. Default: the best.", flags=("--target", "-t"), metavar="TARGET",
        panel=SELECT,
    ),
]  # fmt: skip

Baseline = Annotated[
    str | None, Option("Target to compare with; 'none' for the oracles alone.", metavar="TARGET", panel=JUDGE)
]

ConfigFile = Annotated[Path | None, Option("Use this epcheck.toml.", metavar="FILE", panel=MACHINE)]

CaseSource = Annotated[
    Sources,
    Option(
        "Where cases come from: suite, onnx (its node tests; onnx@dml: in versions that dml claims), or a folder of "
        "`epcheck harvest`; repeat for more.",
        flags=("--source",),
        metavar="SOURCE",
        default=Source.SUITE.value,
        parse=sources_of,
        many=True,
        panel=SELECT,
    ),
]

Variants = Annotated[
    tuple[Axis, ...],
    Option(
        "Also run each case with another: level, io_binding, context, precision, packing, weights, options, threads, "
        "reruns, lifecycle.",
        flags=("--variants",),
        metavar="AXIS,...",
        parse=parse_axes,
        many=True,
        panel=JUDGE,
    ),
]

ContextFrom = Annotated[
    tuple[str, ...],
    Option(
        "With --variants context, also load what this target compiles; repeat for more.",
        flags=("--context-from",),
        metavar="TARGET",
        panel=JUDGE,
    ),
]

Uses = Annotated[
    UsedCases,
    Option(
        "Also use sessions as applications do (threads, reruns, lifecycle, weights, options): of some cases, or all.",
        metavar="none|sample|all",
        panel=JUDGE,
    ),
]
