"""Several runs become one, with its reports."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.option import Option
from epcheck.api.option_types import MaxFlaky, Root, Strict
from epcheck.api.runs.archive import archive
from epcheck.api.runs.result import RunResult
from epcheck.generators.operator_index import family_of


@dataclass(frozen=True)
class MergeOptions:
    """Which runs. out: the folder of the merged run; None makes a new one under `root`. may_differ: facts of a target
    in which its machines may differ. strict, max_flaky: decide `RunResult.conforms` alone."""

    runs: Annotated[
        tuple[Path, ...], Option("Run folders, or folders that hold them.", argument=True, metavar="RUN...")
    ]
    out: Annotated[Path | None, Option("The merged run's folder.", default="a new one under --root")] = None
    root: Root = reports.DEFAULT_ROOT
    may_differ: Annotated[
        tuple[str, ...],
        Option("A fact in which one target's machines may differ; repeat.", metavar="FACT"),
    ] = ()
    strict: Strict = False
    max_flaky: MaxFlaky = None


def merge(options: MergeOptions) -> RunResult:
    """Merge finished runs, the shards of one selection or its runs on several machines, into a new one.

    Raises StoreError when a run is unfinished or damaged, or when two do not belong together. A run of which shards are
    missing is not complete; `RunResult.run.status` names them.
    """
    command = ("epcheck", *sys.argv[1:])
    merged = reports.merge_runs(
        options.runs, options.out, options.root, command, options.may_differ, archive, family_of
    )
    return RunResult.of(merged, options.strict, options.max_flaky)
