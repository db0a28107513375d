"""What a provider claims, and what the suite, or a run of it, says of each claim; which kernels have no case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from epcheck import reports
from epcheck.api.option import Option
from epcheck.api.suite.claims import claims_table
from epcheck.conformance.judging import coverage as claimed
from epcheck.conformance.judging import kernel_coverage, separation
from epcheck.conformance.judging.coverage import (
    COVERED,
    FAILING,
    MISSING,
    PASSING,
    UNPLACED,
    UNREACHABLE,
    CaseKind,
    Triple,
)
from epcheck.conformance.judging.kernel_coverage import EXCLUDED, PARTIAL, UNKNOWN, KernelCoverage
from epcheck.conformance.judging.kernel_coverage import STATES as KERNEL_STATES
from epcheck.conformance.judging.kernel_registry import read_kernel_registry
from epcheck.conformance.judging.separation import Separation
from epcheck.conformance.records import strict_json
from epcheck.conformance.records.run import Run
from epcheck.conformance.targets import claim_file
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import describe_target, resolve
from epcheck.generators import registry, suite
from epcheck.generators.claims import DML, Claims
from epcheck.generators.error import EpcheckError
from epcheck.generators.nearest import ask_if_meant, find_nearest

__all__ = [
    "EXCLUDED",
    "FAILING",
    "KERNEL_STATES",
    "MISSING",
    "PARTIAL",
    "STATES",
    "UNKNOWN",
    "UNREACHABLE",
    "CaseKind",
    "CoverageError",
    "CoverageOptions",
    "KernelCoverage",
    "KernelsOptions",
    "ProviderKernels",
    "Separation",
    "Triple",
    "coverage",
    "kernels",
    "kind_coverage",
    "separations",
]

STATES = (COVERED, PASSING, FAILING, UNPLACED, UNREACHABLE, MISSING)
"""Every `Triple.state`, in the order in which they are shown."""


class CoverageError(EpcheckError, ValueError):
    """What is asked about has no claims; the message says what to name."""


@dataclass(frozen=True)
class CoverageOptions:
    """Whose claims, and what is asked about them. run: None asks the suite. target: whose claims; None for those of the
    run's candidate, without a run for DirectML's provider. provider: the same by the provider's name. claims: a table
    in place of the shipped one. json: a file that every claim goes to."""

    run: Annotated[
        Path | None,
        Option("A run folder: also show its results for each claim.", flags=("--run",)),
    ] = None
    target: Annotated[
        str | None, Option("Target whose claims are listed. Default: the run's candidate.", flags=("--target", "-t"))
    ] = None
    provider: Annotated[str | None, Option("Provider whose claims are listed, by name.")] = None
    claims: Annotated[Path | None, Option("A claim table.", metavar="FILE")] = None
    config: Annotated[Path | None, Option("Use this epcheck.toml.")] = None
    json: Annotated[Path | None, Option("Write every claim as JSON.", metavar="FILE")] = None


@dataclass(frozen=True)
class KernelsOptions:
    """Whose kernels. json: a file that every kernel goes to."""

    target: Annotated[str, Option("Target whose provider's kernels are listed.", flags=("--target", "-t"))] = "cpu"
    config: Annotated[Path | None, Option("Use this epcheck.toml.")] = None
    json: Annotated[Path | None, Option("Write every kernel as JSON.", metavar="FILE")] = None


@dataclass(frozen=True)
class ProviderKernels:
    """The kernels that a provider has. release: of the runtime, or of the plugin. source: where they were read.
    kernels: each range of versions, by name. no_kernel: operators of which the runtime has a schema, the suite no case
    and the provider no kernel."""

    target: str
    provider: str
    release: str
    source: str
    kernels: tuple[KernelCoverage, ...]
    no_kernel: tuple[str, ...]


def coverage(options: CoverageOptions | None = None) -> tuple[Triple, ...]:
    """Every claim of a provider, an operator version with a dtype, and what is known of it.

    Raises ClaimsError and CoverageError when there is no claim table, TableError when one is not valid,
    TargetError, and StoreError when the run cannot be read.
    """
    options = options or CoverageOptions()
    if options.run is None:
        triples = tuple(claimed.of_suite(_claims(options, options.target, {}, options.config)))
    else:
        run = reports.read_run(options.run)
        candidate = _candidate(options, run)
        config = options.config or (Path(str(found)) if (found := run.selection.get("config")) else None)
        claims = _claims(options, candidate, run.targets.get(candidate, {}), config)
        records = (record for record in reports.read_records(options.run) if record.candidate.target == candidate)
        triples = tuple(claimed.of_run(claims, claimed.tally(records)))
    if options.json:
        document = [_as_json(triple) for triple in triples]
        options.json.write_text(strict_json.dumps(document) + "\n", encoding="utf-8", newline="\n")
    return triples


def kernels(options: KernelsOptions | None = None) -> ProviderKernels:
    """Every kernel of a target's provider, as its runtime or its library tells, and whether it has a case.

    Raises TargetError, TargetDown, LabError, RuntimeInstallError, and OSError when the JSON cannot be written.
    """
    options = options or KernelsOptions()
    target = resolve(options.target, load_config(options.config))
    registered = read_kernel_registry(target)
    found = ProviderKernels(
        target.name,
        target.provider or "",
        registered.facts.get("plugin") or f"onnxruntime {registered.facts.get('onnxruntime', 'unknown')}",
        registered.source,
        tuple(kernel_coverage.cover_kernels(registered)),
        kernel_coverage.list_uncovered_schemas(registered),
    )
    if options.json:
        options.json.write_text(strict_json.dumps(asdict(found)) + "\n", encoding="utf-8", newline="\n")
    return found


def kind_coverage(options: CoverageOptions | None = None) -> tuple[CaseKind, ...]:
    """The kinds of graphs of several nodes that the suite has, the cases of what the standard leaves undefined, and
    with a run what it says of them.

    Raises CoverageError, and StoreError when the run cannot be read.
    """
    options = options or CoverageOptions()
    if options.run is None:
        return claimed.case_kinds()
    candidate = _candidate(options, reports.read_run(options.run))
    return claimed.case_kinds(r for r in reports.read_records(options.run) if r.candidate.target == candidate)


def separations(operators: Sequence[str] = ()) -> Iterator[Separation]:
    """Whether some case of an operator separates each cheap algorithm that it meets from the truth.

    The algorithms are those of `generators.families.cheap_algorithms`. operators: as ONNX spells them; without any all,
    which takes a minute.

    Raises SelectionError for an unknown operator.
    """
    known = registry.all_operators()
    for name in operators:
        if name not in known:
            meant = ask_if_meant(find_nearest(name, known)) or "`epcheck list operators` prints all."
            raise suite.SelectionError(f"unknown operator '{name}'. {meant}")
    return separation.separations([known[name] for name in operators or known])


def _candidate(options: CoverageOptions, run: Run) -> str:
    """The candidate of the run that is asked about. Raises CoverageError."""
    if options.target in run.candidates:
        return str(options.target)
    listed = ", ".join(run.candidates)
    if options.target is not None:
        raise CoverageError(f"run {run.run_id} has no target '{options.target}'; it has {listed}")
    if not run.candidates:
        raise CoverageError(f"run {run.run_id} has no target; name another run")
    if len(run.candidates) > 1:
        raise CoverageError(f"run {run.run_id} has several targets; choose one with --target: {listed}")
    return run.candidates[0]


def _claims(options: CoverageOptions, target: str | None, facts: Mapping[str, str], config: Path | None) -> Claims:
    """What is claimed where the target's worker reports these facts; without any, by the table as it is.

    Raises ClaimsError, CoverageError, TableError and TargetError.
    """
    if options.claims is not None:
        return claim_file.parse(claim_file.text_of(options.claims), str(options.claims))
    if options.provider is not None or target is None:
        return claims_table(options.provider or DML)
    found = describe_target(target, load_config(config))
    if found.claims is None:
        raise CoverageError(
            f"target '{target}' has no claim table; make one with `epcheck probe --target {target}` and name it with "
            f"--claims"
        )
    if facts and (why := claim_file.explain_unused(found, facts)):
        raise CoverageError(f"{why}, to be named with --claims")
    return (found.narrow(facts).claims if facts else None) or found.claims


def _as_json(triple: Triple) -> dict[str, object]:
    domain, operator, since_version = triple.key
    return {
        "domain": domain, "operator": operator, "since_version": since_version, "dtype": triple.dtype,
        "state": triple.state, "why": triple.why, "statuses": dict(triple.statuses),
    }  # fmt: skip
