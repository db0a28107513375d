"""`epcheck coverage`: what a provider claims, and what the suite, or a run of it, says of each claim; which of its
kernels have no case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from epcheck.api.option import Option
from epcheck.api.suite.coverage import (
    EXCLUDED,
    KERNEL_STATES,
    PARTIAL,
    STATES,
    UNKNOWN,
    CoverageError,
    CoverageOptions,
    KernelCoverage,
    KernelsOptions,
    ProviderKernels,
    Separation,
    coverage,
    kernels,
    kind_coverage,
    separations,
)
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.conformance.judging.coverage import MISSING, UNREACHABLE, CaseKind, Triple

app = typer.Typer(add_completion=False)

WIDTH = 200
"""Characters of a line that goes to no terminal."""


@dataclass(frozen=True)
class ShownCoverage(CoverageOptions):
    each: Annotated[
        bool, Option("List every claim, not only those without a case.", flags=("--all",), after="provider")
    ] = False
    algorithms: Annotated[
        bool,
        Option("Instead, list the wrong algorithms that no case detects.", flags=("--algorithms",), after="each"),
    ] = False
    kernels: Annotated[
        bool,
        Option(
            "Instead, list the provider's kernels without a case, as its runtime or library tells them.",
            flags=("--kernels",),
            after="algorithms",
        ),
    ] = False


@command(app, ShownCoverage)
def show_coverage(options: ShownCoverage) -> int:
    """List the claims of a provider by operator, version and dtype, with the number of cases.

    Exit code: 1 if a testable claim has no case; with --kernels, if a kernel has neither a case nor a reason.
    """
    if options.algorithms:
        return show_separations(tuple(separations()))
    if options.kernels:
        if options.run or options.provider or options.claims:
            raise CoverageError("--kernels asks a target; leave out --run, --provider and --claims")
        return show_kernels(
            kernels(KernelsOptions(options.target or "cpu", options.config, options.json)), options.each
        )
    triples = coverage(options)
    show(triples, options.each)
    show_kinds(kind_coverage(options))
    return exit_codes.FAILURES if any(triple.state == MISSING for triple in triples) else exit_codes.GOOD


def show(triples: Sequence[Triple], each: bool) -> None:
    """One line for each operator, then the claims without a case, and why others cannot be reached."""
    states = [state for state in STATES if any(triple.state == state for triple in triples)]
    table = Table(ruled=True)
    table.add_column("operator", whole=True)
    table.add_column("versions")
    for heading in ("claims", *states):
        table.add_column(heading, right=True)
    by_operator: dict[str, list[Triple]] = {}
    for triple in triples:
        by_operator.setdefault(triple.operator, []).append(triple)
    for operator, own in by_operator.items():
        versions = ", ".join(map(str, sorted({triple.key[2] for triple in own})))
        counts = Counter(triple.state for triple in own)
        table.add_row(operator, versions, str(len(own)), *(str(counts[state] or "") for state in states))
    terminal = Terminal(width=WIDTH)
    terminal.print_table(table)
    for triple in triples:
        if each or triple.state == MISSING:
            statuses = ", ".join(f"{count} {status}" for status, count in sorted(triple.statuses.items())) or triple.why
            terminal.print(f"{triple.state:11} {_name(triple)}{f': {statuses}' if statuses else ''}")
    for why, count in Counter(t.why for t in triples if t.state == UNREACHABLE).most_common():
        terminal.print(f"{count:5} unreachable: {why}")
    counts = Counter(triple.state for triple in triples)
    reachable = len(triples) - counts[UNREACHABLE]
    terminal.print(
        f"{len(triples):,} claims of {len(by_operator)} operators, {reachable:,} can be reached: "
        + ", ".join(f"{counts[state]:,} {state}" for state in states if state != UNREACHABLE)
    )


def show_kernels(found: ProviderKernels, each: bool) -> int:
    """One line for each kernel that has no case, or none in some dtype; then why others need none, and the counts."""
    terminal = Terminal(width=WIDTH)
    for kernel in found.kernels:
        if each or kernel.state in (MISSING, PARTIAL):
            terminal.print(f"{kernel.state:8} {_describe_kernel(kernel)}")
    unknown = [kernel.name for kernel in found.kernels if kernel.state == UNKNOWN]
    if unknown and not each:
        terminal.print(
            f"unknown  no case, and the library does not tell whether there is a kernel: {', '.join(unknown)}"
        )
    reasons = Counter((k.why, k.source) for k in found.kernels if k.state == EXCLUDED)
    for (why, source), count in reasons.most_common():
        terminal.print(f"{count:5} excluded: {why}{f' ({source})' if source else ''}")
    counts = Counter(kernel.state for kernel in found.kernels)
    terminal.print(
        f"{found.provider} of {found.release}, by {found.source}: {len(found.kernels):,} kernels: "
        + ", ".join(f"{counts[state]:,} {state}" for state in KERNEL_STATES if counts[state])
        + f"; {len(found.no_kernel):,} other operators have a schema, no kernel and no case"
    )
    return exit_codes.FAILURES if counts[MISSING] else exit_codes.GOOD


def _describe_kernel(kernel: KernelCoverage) -> str:
    """Its name, its versions and its dtypes, as far as they are known."""
    words = kernel.name
    if kernel.versions:
        first, last = kernel.versions
        words += f"-{first}{'+' if last is None else f' to {last}' if last != first else ''}"
    if kernel.without_case:
        return f"{words}: no case of {', '.join(kernel.without_case)}"
    return f"{words}: {', '.join(kernel.dtypes)}" if kernel.dtypes else words


def show_separations(found: Sequence[Separation]) -> int:
    """One line for each algorithm that no case of an operator separates from the truth; then the counts."""
    terminal = Terminal()
    for each in found:
        if not each.separated:
            terminal.print(f"{each.operator}: no case of {each.dtype} shows a provider that {each.does}")
    separated, operators = sum(each.separated for each in found), len({each.operator for each in found})
    terminal.print(
        f"{separated:,} of {len(found):,} cheap algorithms are separated from the truth, of {operators} operators"
    )
    return exit_codes.GOOD


def show_kinds(kinds: Sequence[CaseKind]) -> None:
    """One line for each kind of case by rule."""
    statuses = sorted({status for kind in kinds for status in kind.statuses})
    table = Table(ruled=True)
    table.add_column("cases by rule", whole=True)
    table.add_column("aimed at")
    for heading in ("cases", *statuses):
        table.add_column(heading, right=True)
    for kind in kinds:
        counts = (str(kind.statuses.get(status, "")) for status in statuses)
        table.add_row(kind.kind, kind.aim, str(kind.cases), *counts)
    Terminal(width=WIDTH).print_table(table)


def _name(triple: Triple) -> str:
    return f"{triple.operator}-{triple.key[2]} {triple.dtype}"
