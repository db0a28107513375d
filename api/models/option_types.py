"""Options that several calls about models have, declared once: a field has one of these as its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from epcheck.api.models.parsing import level_of, only_target, ranges_of
from epcheck.api.option import Option
from epcheck.conformance.targets.target import Target
from epcheck.models.execution.runner import LEVELS
from epcheck.models.execution.session import Level

Candidate = Annotated[
    str | Target | None,
    Option("Candidate. Default: the best.", flags=("--target", "-t"), parse=only_target, many=True),
]
FeedsFile = Annotated[
    Path | None, Option("An .npz or a folder of ONNX test data; generated otherwise.", flags=("--feeds",))
]
Dims = Annotated[
    Mapping[str, Sequence[int]],
    Option("Sizes of a dynamic dimension; repeat.", flags=("--dim",), metavar="NAME=SIZE,...", parse=ranges_of,
           many=True),
]  # fmt: skip
Seeds = Annotated[tuple[int, ...], Option("Of generated feeds; repeat. Default: 0 and 1.", flags=("--seed",))]
OptimisationLevel = Annotated[Level, Option(f"Graph optimisation: {', '.join(LEVELS)}.", parse=level_of)]
Rtol = Annotated[float | None, Option("Relative error that is allowed, in place of ours.", minimum=0)]
Atol = Annotated[float | None, Option("Absolute error that is allowed; without --rtol it alone counts.", minimum=0)]
Snr = Annotated[float | None, Option("Signal to noise in dB that is wanted, in place of ours.")]
Agreement = Annotated[float | None, Option("Share of equal elements that integer outputs need.", minimum=0, maximum=1)]
MostSessions = Annotated[int, Option("Sessions at most.", minimum=1)]
MostSeconds = Annotated[float, Option("Seconds at most.", minimum=1)]
StepDeadline = Annotated[float, Option("Seconds for each step of a session.", flags=("--timeout",), minimum=1)]
