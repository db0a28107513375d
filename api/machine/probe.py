"""Asking a provider what it takes, and writing that down as a claim table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from packaging.version import InvalidVersion, Version

from epcheck.api.option import Option
from epcheck.api.option_types import Operators
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.scheduling import placements
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import PACKS_AGREE, Target, TargetError
from epcheck.generators import suite
from epcheck.generators.case import Case
from epcheck.generators.claims import probed, table
from epcheck.generators.claims.probed import Asked
from epcheck.generators.claims.table import Table

KEPT = ("onnxruntime", "plugin", "plugin_library", "DirectML.dll", "adapter", "driver_version", "processor", "os")
"""The facts of a worker that a table keeps."""


@dataclass(frozen=True)
class ProbeOptions:
    """Whose claims. out: None for `claims-TARGET.json`. operators: empty for all. each: how many cases of an operator
    version and dtypes are asked about. packed: None packs where nodes are known to be placed as they are alone."""

    target: Annotated[str, Option("Target whose provider is probed.", flags=("--target", "-t"), required=True)]
    out: Annotated[Path | None, Option("Claim table to write.", default="claims-TARGET.json", metavar="FILE")] = None
    operators: Operators = ()
    each: Annotated[int, Option("Cases to probe per operator version and dtypes.", minimum=1)] = 2
    config: Annotated[Path | None, Option("Use this epcheck.toml.")] = None
    jobs: Annotated[int | None, Option("Most workers.", flags=("--jobs", "-j"), minimum=1)] = None
    packed: Annotated[bool | None, Option("Probe many nodes in one model.", default="if results agree")] = None


@dataclass(frozen=True)
class ProbedClaims:
    """A table that was written. asked, taken: nodes. versions, dtypes: operator versions and their dtypes (by type
    constraint) that are claimed, partial: those of the dtypes that are claimed in part. seconds: how long it took."""

    path: Path
    asked: int
    taken: int
    versions: int
    dtypes: int
    partial: int
    seconds: float


def probe(options: ProbeOptions, *, progress: Progress = SILENT) -> ProbedClaims:
    """Ask a provider about nodes of every operator, version and dtype, without running any, and write its claim table.

    Raises TargetError, SelectionError, TargetDown, LabError, RuntimeInstallError, and OSError when the table cannot be
    written.
    """
    with progress.installing() as step:
        target = resolve(options.target, load_config(options.config), step)
    out = options.out or Path(f"claims-{target.plain_name}.json")
    if not out.absolute().parent.is_dir():
        raise TargetError(f"{out.parent}: no such folder; create it first")
    packed = target.provider in PACKS_AGREE if options.packed is None else options.packed
    cases = list(probed.samples(suite.cases(options.operators), options.each))
    asked: list[Asked] = []
    started = time.monotonic()
    with progress.working() as doing:

        def take_answer(case: PreparedCase, why_not: str, fails: bool) -> None:
            asked.append(Asked(case.case, tuple(case.types.items()), why_not, fails))
            if len(asked) % 100 == 0:
                doing(f"{len(asked):,} of about {len(cases):,} nodes")

        prepared = _prepare_cases(cases)
        facts = placements.ask_placements(target, prepared, take_answer, options.jobs, packed)
    seconds = time.monotonic() - started
    found = _table(target, facts, asked, packed)
    out.write_text(table.encode_table(found), encoding="utf-8", newline="\n")
    return ProbedClaims(
        out,
        len(asked),
        sum(not node.why_not for node in asked),
        len(found.operators),
        sum(len(names) for row in found.operators for names in row.type_constraints.values()),
        sum(len(names) for row in found.operators for names in row.partial.values()),
        seconds,
    )


def _prepare_cases(cases: list[Case]) -> Iterator[PreparedCase]:
    """Those that can be built and need not be refused."""
    for case in cases:
        found = prepared_case.prepare(case)
        if isinstance(found, PreparedCase) and not found.must_be_refused:
            yield found


def _table(target: Target, facts: Mapping[str, str], asked: list[Asked], packed: bool) -> Table:
    asked.sort(key=lambda node: node.case.id)
    return Table(
        probed.rows(asked),
        provider=target.provider or "",
        about="What the provider takes, found by creating sessions without running them.",
        when=_limit_to_release(facts),
        probed=table.Probed(
            date=datetime.now(UTC).date().isoformat(),
            target=target.name,
            epcheck=version("epcheck"),
            onnx=version("onnx"),
            facts={name: facts[name] for name in KEPT if name in facts},
            options=dict(target.options),
            cases=len(asked),
            placed=sum(not node.why_not for node in asked),
            packed=packed,
        ),
    )


def _limit_to_release(facts: Mapping[str, str]) -> dict[str, str | list[str]]:
    """Where a table holds: on the releases of the plugin that differ in the last number only, since kernels come with
    the others; those of the runtime where the provider is its own, or the plugin does not tell its version."""
    for name, release in (("plugin", facts.get("plugin", "").rpartition(" ")[2]), ("runtime", facts["onnxruntime"])):
        with contextlib.suppress(InvalidVersion):
            found = Version(release)
            return {name: f"{found.major}.{found.minor}.*"}
    return {"runtime": facts["onnxruntime"]}
