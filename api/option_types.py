"""Options that several calls have, declared once: a field has one of these as its type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option

Root = Annotated[Path, Option("Parent folder of run folders.")]
StoreFolder = Annotated[Path | None, Option("A store.", flags=("--store",), default="EPCHECK_STORE, or epcheck-store")]
Vulkan = Annotated[Path | None, Option("Vulkan driver of the lab.", metavar="ICD.json")]
Operators = Annotated[tuple[str, ...], Option("Operator; repeat for more.", flags=("--op",))]
Dtypes = Annotated[tuple[str, ...], Option("numpy dtype name; repeat for more.", flags=("--dtype",))]
Thin = Annotated[bool, Option("A few cases per operator version and dtype.", flags=("--thin",))]
Strict = Annotated[bool, Option("Fixed and stale expectations and flaky cases also fail the run.", flags=("--strict",))]
MaxFlaky = Annotated[
    int | None,
    Option("More flaky cases than this fail the run. Default: unlimited; 0 with --strict.", minimum=0),
]
Factor = Annotated[float, Option("Report errors that grew by at least this factor (in ULP).", minimum=1.0)]
OwnProcess = Annotated[
    bool, Option("Examine the model in a separate process with limits.", flags=("--own-process/--no-own-process",))
]

HtmlFile = Annotated[Path | None, Option("Write the page.", metavar="FILE", folder=False)]
MarkdownFile = Annotated[Path | None, Option("Write Markdown.", metavar="FILE", folder=False)]
JsonFile = Annotated[Path | None, Option("Write JSON.", metavar="FILE", folder=False)]
JUnitFile = Annotated[Path | None, Option("Write JUnit XML.", metavar="FILE", folder=False)]
AnnotationsFile = Annotated[
    Path | None,
    Option("Write at most 10 annotations for GitHub Actions; print the file in a step.", metavar="FILE", folder=False),
]
