"""`epcheck replay`: a folder with a model and test data, run on targets and judged."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
import typer
from rich.console import Console

from epcheck.cli.terminal import failure
from epcheck.cli.terminal.plain import safe
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import record
from epcheck.conformance.records.outcome import DONE
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling import stream
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import ask
from epcheck.conformance.scheduling.session import Session
from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Output, Outputs, Ulp

app = typer.Typer(add_completion=False)

RTOL, ATOL = 1e-3, 1e-7
"""How far ONNX's own backend tests let a floating-point output be from its file (onnx.backend.test, TestCase)."""


def replay(
    folder: Path, candidates: Sequence[Target], baseline: Target | None = None, exact: bool = False
) -> Iterator[Record]:
    """Run every `test_data_set_*` of a folder in ONNX's test-data layout, as `epcheck repro` writes it, on targets.

    The truth is in the `output_*.pb`; where a set has none, it is what the baseline answers. Integers and booleans must
    be equal. Floating-point numbers may be RTOL away in units of the dtype's precision (float16 1, float32 8389 ULP)
    or ATOL; exact: they must be equal as well, as they must where data is only moved.
    Raises ModelFileError, and TargetDown when a target cannot be started.
    """
    for built in _cases(folder, baseline, exact):
        records: list[Record] = []
        with Session(Plan((), tuple(candidates), baseline), records.append) as session:
            session.submit(built.case)
            while session.under_way:
                session.turn()
        for item in records:
            again = _quoted("epcheck", "replay", str(folder), "--target", item.candidate.target)
            yield replace(item, case=replace(item.case, repro=again))


def _quoted(*words: str) -> str:
    """A command line as this system's shell takes it: a stranger chose the folder's name."""
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _cases(folder: Path, baseline: Target | None, exact: bool) -> Iterator[BuiltCase]:
    model = model_file.load(folder / "model.onnx")
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in weights]
    outputs = [value.name for value in model.graph.output]
    sets = sorted(path for path in folder.glob("test_data_set_*") if path.is_dir())
    if not sets and inputs:
        raise ModelFileError(f"'{folder}' has no test_data_set_0 with a value for the input '{inputs[0]}'")
    for data in sets or [folder]:
        feeds = _arrays(data, "input", inputs)
        truth = _arrays(data, "output", outputs)
        if len(feeds) < len(inputs):
            raise ModelFileError(f"'{data}' has no value for the input '{inputs[len(feeds)]}'")
        if 0 < len(truth) < len(outputs):
            raise ModelFileError(f"'{data}' has no value for the output '{outputs[len(truth)]}'")
        built = _case(model, folder, data.name, feeds, outputs)
        if not truth:
            truth = _baseline_says(built, baseline)
        yield _with_truth(built, Outputs(tuple(_output(name, value, exact) for name, value in truth.items())))


def _arrays(data: Path, kind: str, names: Sequence[str]) -> dict[str, Array]:
    """Name -> value, from the files `KIND_0.pb`, `KIND_1.pb`, ... up to the first that is not there."""
    files = [data / f"{kind}_{index}.pb" for index in range(len(names))]
    count = next((index for index, file in enumerate(files) if not file.exists()), len(files))
    return {name: model_file.load_tensor(file) for name, file in zip(names[:count], files[:count], strict=True)}


def _case(
    model: onnx.ModelProto, folder: Path, data: str, feeds: dict[str, Array], outputs: Sequence[str]
) -> BuiltCase:
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    only = model.graph.node[0] if len(model.graph.node) == 1 else None
    domain = only.domain if only else ""
    opset = opsets.get(domain, 0)
    operands = tuple(Operand(name, value) for name, value in feeds.items())
    dtype = operands[0].value.dtype.name if operands else ""
    name = only.op_type if only else "model"

    def build(case: Case) -> BuiltCase:
        return BuiltCase(
            case=case,
            node=Node(only.op_type if only else "", domain, opset, operands, tuple(outputs)),
            opset=opset,
            model=model.SerializeToString(),
            feeds=feeds,
            truth=Outputs(()),
            types={},
            lowering=None,
        )

    return Case(name, domain, opset, dtype, data, folder.resolve().name, build).build()


def _with_truth(built: BuiltCase, truth: Outputs) -> BuiltCase:
    return replace(built.case, builder=lambda case: replace(built, case=case, truth=truth)).build()


def _output(name: str, value: Array, exact: bool) -> Output:
    if exact or value.dtype.kind != "f":
        return Output(name, value)
    bound = float(round(RTOL * 2 ** np.finfo(value.dtype).nmant))
    return Output(name, value, Ulp(bound, "onnx.backend.test's rtol 1e-3 and atol 1e-7", ATOL))


def _baseline_says(built: BuiltCase, baseline: Target | None) -> dict[str, Array]:
    if baseline is None:
        raise ModelFileError(f"'{built.case.sample}' has no output_0.pb: name a baseline that says what is right")
    said = ask(baseline, prepared_case.of(built))
    if said.kind != DONE:
        raise ModelFileError(
            f"'{built.case.sample}' has no output_0.pb, and the baseline '{baseline.name}' {said.kind}: {said.message}"
        )
    return dict(said.outputs)


def words(item: Record) -> Iterable[str]:
    """A verdict as lines of plain text: the status, who, why, and the first wrong elements."""
    opinion = item.candidate
    why = opinion.message or "gives the expected outputs"
    yield f"{item.status}: {item.case.sample}: {opinion.target}: {why}"
    for difference in opinion.differences:
        for wrong in difference.first:
            ulp = "" if wrong.ulp is None else f", {wrong.ulp:g} ULP away"
            yield f"  {difference.output}{list(wrong.at)}: expected {wrong.expected}, got {wrong.got}{ulp}"
    if item.baseline is not None and item.baseline.status != record.PASS:
        yield f"  {item.baseline.target}, the baseline: {item.baseline.status}: {item.baseline.message}"


@app.command()
def command(
    folder: Annotated[Path, typer.Argument(help="A folder with model.onnx and test_data_set_0/input_0.pb, ...")],
    target: Annotated[list[str] | None, typer.Option("--target", "-t", help="Candidate; repeat for more.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Target to compare with; 'none': the files alone.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Floating-point outputs must be equal, too.")] = False,
) -> None:
    """Run a model with its test data, a stranger's or one of `epcheck repro`, on targets.

    Exit code: 0 every target gives the expected outputs, 1 one does not, 2 bad input or it could not run.
    """
    console = Console(emoji=False, highlight=False, soft_wrap=True)
    passed = True
    with failure.one_sentence():
        candidates, against = stream.choose(tuple(target or ()), baseline)
        for item in replay(folder, candidates, against, exact):
            passed &= item.status == record.PASS
            for line in words(item):
                console.print(safe(line))
    raise typer.Exit(failure.GOOD if passed else failure.FAILURES)
