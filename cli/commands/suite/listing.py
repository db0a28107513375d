"""`epcheck list`: what the suite has."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from epcheck.cli.terminal import failure
from epcheck.conformance.targets import target as targets
from epcheck.generators import suite
from epcheck.generators.suite import Source

app = typer.Typer(add_completion=False)


class What(StrEnum):
    """What can be listed."""

    cases = "cases"
    operators = "operators"
    targets = "targets"


@app.command()
def command(
    what: Annotated[What, typer.Argument(help="What to list.")] = What.cases,
    op: Annotated[list[str] | None, typer.Option("--op", help="Operator; repeat for more.")] = None,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", help="numpy dtype name; repeat for more.")] = None,
    pattern: Annotated[list[str] | None, typer.Option("-k", help="Glob or substring of case ids.")] = None,
    source: Annotated[Source, typer.Option(help="Our generators' cases, or onnx's own node tests.")] = Source.SUITE,
    thin: Annotated[bool, typer.Option("--thin", help="A few cases of each operator version and dtype.")] = False,
) -> None:
    """Print case ids, operators with their versions and case counts, or the targets of this machine."""
    with failure.one_sentence():
        if what is What.targets:
            for line in _targets():
                typer.echo(line)
        elif what is What.operators:
            for name, operator in suite.all_operators().items():
                cases = list(operator.cases())
                versions = ", ".join(str(v) for v in sorted({c.since_version for c in cases}))
                typer.echo(f"{name:16} {len(cases):5} cases  since_version {versions}")
        else:
            for case in suite.cases(op or (), dtype or (), pattern or (), source=source, thin=thin):
                typer.echo(case.id)


def _targets() -> list[str]:
    best = targets.best()
    lines = ["cpu        CPUExecutionProvider of this interpreter", f"dml        {targets.why_no_dml() or 'ready'}"]
    lines += [f"directml   {targets.why_no_dml() or 'ready'}"]
    lines += ["reference  onnx.reference.ReferenceEvaluator"]
    lines += [f"{name:10} {targets.CONFIG}" for name in targets.load_config().get("targets", {})]
    return [*lines, f"default    {best.specification}: {best.reason}"]
