"""Options that several calls about models have, declared once: a field has one of these as its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from epcheck.api.models.parsing import level_of, only_target, ranges_of
from epcheck.api.option import JUDGE, MACHINE, SELECT, Option
from epcheck.conformance.targets.target import Target
from epcheck.models.execution.runner import LEVELS
from epcheck.models.execution.session import Level

Candidate = Annotated[
    str | Target | None,
    Option("Candidate. Default: the best.", flags=("--target", "-t"), parse=only_target, many=True),
]
FeedsFile = Annotated[
    Path | None, Option("An .npz or a folder of ONNX test data. Default: generated.", flags=("--feeds",))
]
Dims = Annotated[
    Mapping[str, Sequence[int]],
    Option(
        "Sizes of a dynamic dimension; repeat for more.", flags=("--dim",), metavar="NAME=SIZE,...", parse=ranges_of,
        many=True, panel=SELECT,
    ),
]  # fmt: skip
Seeds = Annotated[
    tuple[int, ...],
    Option("Seed of generated feeds; repeat for more. Default: 0 and 1.", flags=("--seed",), metavar="N", panel=SELECT),
]
OptimisationLevel = Annotated[
    Level, Option(f"Graph optimisation: {', '.join(LEVELS)}.", metavar="LEVEL", parse=level_of, panel=MACHINE)
]
Rtol = Annotated[
    float | None,
    Option("Allowed relative error. Default: derived from the model.", metavar="X", minimum=0, panel=JUDGE),
]
Atol = Annotated[
    float | None,
    Option("Allowed absolute error. Without --rtol, the only criterion.", metavar="X", minimum=0, panel=JUDGE),
]
Snr = Annotated[
    float | None,
    Option("Required signal-to-noise ratio in dB. Default: derived from the model.", metavar="DB", panel=JUDGE),
]
Agreement = Annotated[
    float | None,
    Option("Required share of equal elements in integer outputs.", metavar="X", minimum=0, maximum=1, panel=JUDGE),
]
MostSessions = Annotated[int, Option("Most sessions.", minimum=1)]
MostSeconds = Annotated[float, Option("Time limit in seconds.", minimum=1)]
StepDeadline = Annotated[
    float,
    Option("Time limit for each step of a session.", flags=("--timeout",), metavar="SECONDS", minimum=1, panel=MACHINE),
]
