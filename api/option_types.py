"""Options that several calls have, declared once: a field has one of these as its type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from epcheck.api.option import JUDGE, MACHINE, OUTPUT, SELECT, Option

Root = Annotated[Path, Option("Parent folder of run folders.", metavar="FOLDER", panel=OUTPUT)]
StoreFolder = Annotated[Path | None, Option("A store.", flags=("--store",), default="EPCHECK_STORE, or epcheck-store")]
Vulkan = Annotated[Path | None, Option("Vulkan driver of the lab.", metavar="ICD.json", panel=MACHINE)]
Operators = Annotated[
    tuple[str, ...], Option("Operator; repeat for more.", flags=("--op",), metavar="OPERATOR", panel=SELECT)
]
Dtypes = Annotated[
    tuple[str, ...], Option("numpy dtype name; repeat for more.", flags=("--dtype",), metavar="DTYPE", panel=SELECT)
]
Patterns = Annotated[
    tuple[str, ...],
    Option("Glob or substring of case ids; repeat for more.", flags=("-k",), metavar="PATTERN", panel=SELECT),
]
Thin = Annotated[bool, Option("A few cases per operator version and dtype.", flags=("--thin",), panel=SELECT)]
Strict = Annotated[
    bool, Option("Fixed and stale expectations and flaky cases also fail the run.", flags=("--strict",), panel=JUDGE)
]
StrictAccuracy = Annotated[
    bool,
    Option(
        "Accuracy suspicions also fail the run: right answers much further from the truth than the baseline's.",
        flags=("--strict-accuracy",),
        panel=JUDGE,
    ),
]
MaxFlaky = Annotated[
    int | None,
    Option(
        "More flaky cases than this fail the run. Default: unlimited; 0 with --strict.",
        metavar="N",
        minimum=0,
        panel=JUDGE,
    ),
]
Factor = Annotated[
    float,
    Option("Report errors that grew by at least this factor (in ULP).", metavar="FACTOR", minimum=1.0, panel=JUDGE),
]
OwnProcess = Annotated[
    bool,
    Option(
        "Examine the model in a separate process with limits.",
        flags=("--own-process/--no-own-process",),
        panel=MACHINE,
    ),
]

HtmlFile = Annotated[Path | None, Option("Write the page.", metavar="FILE", folder=False, panel=OUTPUT)]
MarkdownFile = Annotated[Path | None, Option("Write Markdown.", metavar="FILE", folder=False, panel=OUTPUT)]
JsonFile = Annotated[Path | None, Option("Write JSON.", metavar="FILE", folder=False, panel=OUTPUT)]
JUnitFile = Annotated[Path | None, Option("Write JUnit XML.", metavar="FILE", folder=False, panel=OUTPUT)]
AnnotationsFile = Annotated[
    Path | None,
    Option(
        "Write at most 10 annotations for GitHub Actions; print the file in a step.",
        metavar="FILE",
        folder=False,
        panel=OUTPUT,
    ),
]
