"""A folder with a model and test data, run on targets and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
from onnx import helper

from epcheck.api.models.examining.examination import ExaminationError, examine
from epcheck.api.option import Option
from epcheck.api.option_types import OwnProcess
from epcheck.api.progress import SILENT
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records.outcome import DONE
from epcheck.conformance.records.record import Record, decode, encode
from epcheck.conformance.records.repro_command import quote_command
from epcheck.conformance.scheduling import stream
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import ask
from epcheck.conformance.targets.target import CPU, DISABLE_FALLBACK, Target
from epcheck.conformance.targets.variants import FROM, Variants, variant_of
from epcheck.conformance.test_data import model_file, repro_truth
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.test_data.repro_truth import Bounds, Stated
from epcheck.conformance.workers.program import protocol
from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.node import Node, Operand, Surroundings
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Ulp

DEADLINE_S = 300.0
"""Seconds that a step of the folder's examination may take without a sign of life."""

RTOL, ATOL = 1e-3, 1e-7
TOLERANCE = Citation(CitationKind.PUBLISHED, "onnx.backend.test's rtol 1e-3 and atol 1e-7", Publisher.ONNX)
"""How far ONNX's own backend tests let a floating-point output be from its file (onnx.backend.test, TestCase)."""


@dataclass(frozen=True)
class ReplayOptions:
    """Which folder, on what. targets: empty chooses the best that is installed. baseline: None chooses as `run` does.
    exact: whether floating-point outputs must be equal, too. variant: another way in which it is run as well, as
    `level=all`; empty for that of the folder, where `repro` wrote one. own_process: read the folder in a process of its
    own, with bounds."""

    folder: Annotated[Path, Option("A folder with model.onnx and test_data_set_0/input_0.pb, ...", argument=True)]
    targets: Annotated[tuple[str, ...], Option("Candidate; repeat for more.", flags=("--target", "-t"))] = ()
    baseline: Annotated[str | None, Option("Target to compare with; 'none' for the files alone.")] = None
    exact: Annotated[bool, Option("Floating-point outputs must also match exactly.", flags=("--exact",))] = False
    variant: Annotated[
        str, Option("Also run this variant, for example level=all. Default: the folder's.", metavar="AXIS=VALUE")
    ] = ""
    own_process: OwnProcess = True


def replay(options: ReplayOptions) -> Iterator[Record]:
    """Run every `test_data_set_*` of a folder in ONNX's test-data layout, as `repro` writes it, on targets; of a folder
    without a model, those of the folders in it.

    What a folder of ours says must be refused must be; what it says is selected, as by TopK, may be any accepted pair.

    The truth is in the `output_*.pb`; where a set has none, it is the baseline's output. Integers and booleans must be
    equal. Floating-point numbers may be RTOL away in units of the dtype's precision (float16 1, float32 8389 ULP)
    or ATOL; in a folder of ours, as far as `allowed_*.pb` says for each element, from `exact_*.pb`. exact: they must be
    equal as well, as they must where data is only moved. A node, and what `repro` wrote, has to run on the provider; of
    another model of several nodes those that it does not take run on the CPU provider. A folder of ours is run at the
    level of graph optimisation that it states. A callable is called twice, and has to give the same. A folder of a
    variant is run in the ordinary way and in that variant, as a run with `--variants` does; a record says how they
    differ.
    Raises TargetError, ModelFileError, ExaminationError, and TargetDown when a target cannot be started.
    """
    candidates, baseline = stream.choose(options.targets, options.baseline)
    wanted = _Wanted(options, candidates, baseline)
    if not options.own_process:
        yield from (_with_command(record, options, folder) for folder, record in _records(wanted))
        return
    targets = candidates if baseline is None else (*candidates, baseline)
    folders, names = {str(folder): folder for folder in _folders(options.folder)}, {each.name for each in candidates}
    for name, line in examine(_lines, wanted, options.folder, SILENT.say, DEADLINE_S, targets):
        try:
            record = decode(line)
        except (ValueError, RecursionError):
            raise ExaminationError(f"{options.folder}: cannot be examined: its records cannot be read") from None
        if name not in folders or record.candidate.target not in names:
            raise ExaminationError(f"{options.folder}: cannot be examined: its records are of something else")
        yield _with_command(record, options, folders[name])


@dataclass(frozen=True)
class _Wanted:
    options: ReplayOptions
    candidates: tuple[Target, ...]
    baseline: Target | None


def on_cpu(item: Record) -> set[str]:
    """The operators of a model that ran on the CPU provider, where others ran on the target's own."""
    assignment = item.candidate.assignment or ()
    on = {operator for provider, operator in assignment if provider == CPU}
    return on if any(provider != CPU for provider, _ in assignment) else set()


def _lines(wanted: _Wanted, _say: Callable[[str], None]) -> tuple[tuple[str, str], ...]:
    """The records, as lines of JSON, each with its folder."""
    return tuple((str(folder), encode(record)) for folder, record in _records(wanted))


def _with_command(record: Record, options: ReplayOptions, folder: Path) -> Record:
    """The record with the command that replays its folder."""
    stated = repro_truth.read_stated(folder)
    variant = options.variant or (stated.variant if stated else "")
    way = ("--variant", variant) if variant else ()
    command = quote_command("epcheck", "replay", str(folder), "--target", record.candidate.target, *way)
    return replace(record, case=replace(record.case, repro=command))


def _records(wanted: _Wanted) -> Iterator[tuple[Path, Record]]:
    options, candidates, baseline = wanted.options, wanted.candidates, wanted.baseline
    folders = ((folder, repro_truth.read_stated(folder)) for folder in _folders(options.folder))
    found = (
        (folder, stated, built)
        for folder, stated in folders
        for built in _cases(folder, stated, baseline, options.exact)
    )
    for folder, stated, built in found:
        records: list[Record] = []
        how = stated or Stated()
        variant = options.variant or how.variant
        ways = {target.name: Variants((_vary(target, variant, folder),), {}) for target in candidates if variant}
        strict = stated is not None or bool(built.node.op_type)  # of another model, some nodes may run elsewhere
        chosen = tuple(
            _repeat_sessions(target if strict else _with_fallback(target), how.level) for target in candidates
        )
        with CaseScheduler(Plan((), chosen, baseline, variants=ways), records.append) as running:
            running.submit(built.case)
            while running.under_way:
                running.turn()
        yield from ((folder, record) for record in records)


def _vary(target: Target, variant: str, folder: Path) -> Target:
    """The variant of a target; of one that loads what another compiled, with that, which the folder has."""
    if not variant.startswith(FROM):
        return variant_of(target, variant)
    path = folder / protocol.CONTEXT_FILE
    if not path.is_file():
        raise ModelFileError(f"'{folder}' has no {path.name}; write the folder with `epcheck repro`")
    with path.open("rb") as file:
        compiled = file.read(protocol.CONTEXT_BYTES + 1)
    if not 0 < len(compiled) <= protocol.CONTEXT_BYTES:
        raise ModelFileError(f"'{path}' must have from 1 to {protocol.CONTEXT_BYTES:,} bytes; write it again")
    compiler = replace(target, name=variant.removeprefix(FROM))
    return replace(variant_of(target, variant, compiler), compiled=compiled)


def _with_fallback(target: Target) -> Target:
    """The target as it runs a whole model: nodes that its provider does not take run on the CPU provider."""
    return replace(target, config={key: value for key, value in target.config.items() if key != DISABLE_FALLBACK})


def _repeat_sessions(target: Target, level: str) -> Target:
    """The target as `validate` and `reduce` run it: at a level of graph optimisation, where there is one, and a
    callable twice, as each session runs twice."""
    return replace(
        target, request_defaults={"repeat": True, **({"level": level} if level else {}), **target.request_defaults}
    )


def _folders(folder: Path) -> list[Path]:
    """The folder itself, or where it has no model those in it that have one, as `repro` leaves them."""
    below = sorted(path.parent for path in folder.glob("*/model.onnx"))
    return below if below and not (folder / "model.onnx").exists() else [folder]


def _cases(folder: Path, stated: Stated | None, baseline: Target | None, exact: bool) -> Iterator[BuiltCase]:
    model = model_file.load(folder / "model.onnx")
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in weights]
    outputs = [value.name for value in model.graph.output]
    sets = sorted(path for path in folder.glob("test_data_set_*") if path.is_dir())
    if not sets and inputs:
        raise ModelFileError(f"'{folder}' has no test_data_set_0 with a value for the input '{inputs[0]}'")
    for data in sets or [folder]:
        feeds = _arrays(data, "input", inputs)
        if len(feeds) < len(inputs):
            raise ModelFileError(f"'{data}' has no value for the input '{inputs[len(feeds)]}'")
        built = _case(model, folder, data.name, feeds, outputs)
        if stated and stated.refused:
            yield _with_truth(_with_types(built, model), Refusal(stated.refused))
        elif stated and stated.selection and not exact:
            yield _with_truth(built, repro_truth.selection(data, tuple(outputs), *stated.selection))
        else:
            yield _with_truth(built, _outputs(built, data, stated, baseline, exact))


def _outputs(built: BuiltCase, data: Path, stated: Stated | None, baseline: Target | None, exact: bool) -> Outputs:
    """What is right by the files of a data set, or by the baseline where there are none."""
    names = built.node.outputs
    truth = _arrays(data, "output", names)
    if 0 < len(truth) < len(names):
        raise ModelFileError(f"'{data}' has no value for the output '{names[len(truth)]}'")
    if not truth:
        truth = _truth_of_baseline(built, baseline)
    ours = stated is not None or any(data.glob("allowed_*.pb"))
    bounds = Bounds.of(data, len(names)) if ours else None
    truths = (_output(at, name, value, exact, bounds) for at, (name, value) in enumerate(truth.items()))
    open_ = "undefined_*.pb says what the standard leaves open" if bounds and bounds.undefined else ""
    return Outputs(tuple(truths), (stated.undefined if stated else "") or open_)


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


def _with_types(built: BuiltCase, model: onnx.ModelProto) -> BuiltCase:
    """The case with the dtypes of the model's outputs, which no value of theirs shows."""
    types = {value.name: _dtype(value.type.tensor_type.elem_type) for value in model.graph.output}
    return replace(built, node=replace(built.node, surroundings=Surroundings((), (), types, {})))


def _dtype(element: int) -> str:
    """The name of a dtype; empty for none, and for one that nobody knows."""
    try:
        return schema.dtype_name(helper.tensor_dtype_to_np_dtype(element))
    except KeyError:
        return ""


def _with_truth(built: BuiltCase, truth: Truth) -> BuiltCase:
    return replace(built.case, builder=lambda case: replace(built, case=case, truth=truth)).build()


def _output(at: int, name: str, value: Array, exact: bool, bounds: Bounds | None) -> Output:
    if bounds is not None and not exact:
        return bounds.output(at, name, value)
    if exact or value.dtype.kind != "f":
        return Output(name, value)
    bound = float(round(RTOL * 2 ** np.finfo(value.dtype).nmant))
    return Output(name, value, Ulp(bound, (TOLERANCE,), ATOL))


def _truth_of_baseline(built: BuiltCase, baseline: Target | None) -> dict[str, Array]:
    if baseline is None:
        raise ModelFileError(f"'{built.case.sample}' has no output_0.pb: name a baseline with --baseline")
    outcome = ask(baseline, prepared_case.of(built))
    if outcome.kind != DONE:
        why = f"the baseline '{baseline.name}' {outcome.kind}: {outcome.message}"
        raise ModelFileError(f"'{built.case.sample}' has no output_0.pb, and {why}")
    return dict(outcome.outputs)
