"""A demonstration: a provider with known faults is judged, and its report shows them."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from typing import Annotated

from epcheck.api.machine.demo_provider import OPERATORS
from epcheck.api.option import Option
from epcheck.api.option_types import Root
from epcheck.api.progress import SILENT, Progress
from epcheck.api.runs.result import RunResult
from epcheck.api.suite.run import run
from epcheck.api.suite.run_options import RunOptions
from epcheck.reports import DEFAULT_ROOT

TARGET = "python:epcheck.api.machine.demo_provider:provider"
"""The provider with faults; any command takes it as a target."""


DTYPE = "int32"
"""Of this dtype the suite has few cases of these operators, and they show all faults."""


@dataclass(frozen=True)
class DemoOptions:
    """root: where the run folder is made. open: show the report in the browser."""

    root: Root = DEFAULT_ROOT
    open: Annotated[bool, Option("Open the report in the browser.")] = True


def demo(options: DemoOptions | None = None, *, progress: Progress = SILENT) -> RunResult:
    """Run the int32 cases of five operators on a made-up provider, four of which it gets wrong. About ten seconds.

    Raises what `run` raises.
    """
    options = options or DemoOptions()
    result = run(RunOptions((TARGET,), operators=OPERATORS, dtypes=(DTYPE,), root=options.root), progress=progress)
    if options.open:
        webbrowser.open((result.folder / "report.html").resolve().as_uri())
    return result
