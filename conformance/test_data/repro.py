"""A case as a folder that anybody can run: ONNX's own test-data layout, and a script that needs onnxruntime only.

model.onnx                     the one-node model
test_data_set_0/input_0.pb     its graph inputs, in order, as serialized TensorProto
test_data_set_0/output_0.pb    the true outputs (none when the node must be refused)
test_data_set_0/exact_0.pb     the same before they were rounded, where that is known
test_data_set_0/allowed_0.pb   how far from that each element may be; none where it must be equal
test_data_set_0/undefined_0.pb true where the standard defines nothing; none where it defines all
test_data_set_0/among_0.pb     what may stand there; none where anything may
test_data_set_0/accepted_0_0.pb, accepted_0_1.pb, ... pairs of values and indices, each as right as the outputs, where
                               the standard accepts several, or any order; selected_from.pb has what they are taken from
test_data_set_0/zeros_0.pb     true where a zero must have the sign of the truth; none where no sign is defined
data.npz                       the same, for run.py
case.json                      what the case is, and what is right besides the outputs
run.py                         runs the model on a provider and judges it; its exit code says how (`run_script`)

The folder of a variant (`run_settings`) has what run.py needs for it besides: varied.onnx, its weights, contexts.py, or
uses.py.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np
from onnx import numpy_helper

from epcheck.conformance.comparison import zero_signs
from epcheck.conformance.comparison.bounds import absolute
from epcheck.conformance.records.repro_command import folder_name
from epcheck.conformance.workers.program.protocol import LEVELS
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.error import EpcheckError
from epcheck.generators.truth import Output, Outputs, Refusal, Selection

DATA_SET = "test_data_set_0"

KINDS = ("output", "exact", "allowed", "zeros", "undefined", "among")
"""What is written of an output, as KIND_0.pb and as KIND.NAME in data.npz."""

SCRIPT = Path(__file__).with_name("run_script.py")
"""run.py: the same in every folder. What differs is in case.json."""


@dataclass(frozen=True)
class Judged:
    """What run.py and `replay` need to know besides the model and its inputs.

    words: what the case is. outputs: the truth, in the order of the graph's outputs; those that nobody knows may be
    missing. operator: the one whose placement has to be proved; empty for a model, of which any node will do. level: a
    name of GraphOptimizationLevel. refusal: the rule for which the node must be refused; undefined: what the
    standard leaves open, so that it may be. selection: what is accepted
    of an operator that selects. session: how run.py makes its session besides, as `run_settings` says. files: name ->
    content of the files that it needs for that.
    """

    words: str
    outputs: tuple[Output, ...]
    provider: str = "DmlExecutionProvider"
    operator: str = ""
    level: str = "ORT_DISABLE_ALL"
    refusal: str = ""
    undefined: str = ""
    selection: Selection | None = None
    session: Mapping[str, object] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


class ReproError(EpcheckError, ValueError):
    """A case cannot be written out; the message says why."""


def write(built: BuiltCase, out: Path, known: Judged | None = None) -> Path:
    """Write a case as `write_case` does. known: what is right in it and how it is run; None for what `judged` says."""
    return write_case(built.case.id, built.model, built.feeds, known or judged(built), out)


def write_case(case_id: str, model: bytes, feeds: Mapping[str, Array], known: Judged, out: Path) -> Path:
    """Write a case into a folder of its own under `out` and return that folder. Raises ReproError."""
    variant = str(known.session.get("variant", ""))
    folder = out / folder_name(f"{case_id}_{variant}" if variant else case_id)
    try:
        write_folder(folder, model, feeds, known)
    except OSError as error:
        raise ReproError(f"case '{case_id}' cannot be written to '{folder}': {error.strerror or error}") from None
    return folder


def archive(built: BuiltCase) -> bytes:
    """The folder that `write` makes, as a zip file: the same bytes for the same case. It is not compressed: many of
    them are compressed together, and have the same script."""
    made = io.BytesIO()
    with ZipFile(made, "w") as file:
        for name, content in _files(built.model, built.feeds, judged(built)).items():
            file.writestr(ZipInfo(f"{folder_name(built.case.id)}/{name}"), content)
    return made.getvalue()


def write_folder(folder: Path, model: bytes, feeds: Mapping[str, Array], judged: Judged) -> None:
    """Write the files that are listed above. feeds: name -> value in the order of the graph's. Raises OSError."""
    (folder / DATA_SET).mkdir(parents=True, exist_ok=True)
    for stale in (folder / DATA_SET).glob("*.pb"):
        stale.unlink()
    for name, content in _files(model, feeds, judged).items():
        (folder / name).write_bytes(content)


def _files(model: bytes, feeds: Mapping[str, Array], judged: Judged) -> dict[str, bytes]:
    """Name within the folder -> content."""
    values: dict[str, dict[str, Array]] = {kind: {} for kind in KINDS}
    tensors = {f"{DATA_SET}/input_{index}.pb": _tensor(*item) for index, item in enumerate(feeds.items())}
    for index, output in enumerate(judged.outputs):
        found = _kinds(output)
        for kind, value in found.items():
            if value is not None:
                values[kind][output.name] = value
                tensors[f"{DATA_SET}/{kind}_{index}.pb"] = _tensor(output.name, value)
    arrays = {f"input.{name}": value for name, value in feeds.items()}
    arrays |= {f"{kind}.{name}": value for kind, of_kind in values.items() for name, value in of_kind.items()}
    if judged.selection:
        pairs = enumerate(judged.selection.accepted)
        accepted = {(number, part): pair[part] for number, pair in pairs for part in (0, 1)}
        arrays |= {f"accepted.{number}.{part}": value for (number, part), value in accepted.items()}
        tensors |= {f"{DATA_SET}/accepted_{n}_{part}.pb": _tensor("", value) for (n, part), value in accepted.items()}
        tensors[f"{DATA_SET}/selected_from.pb"] = _tensor("", judged.selection.data)
    data = io.BytesIO()
    np.savez(data, **arrays)  # type: ignore[arg-type]
    return {
        "model.onnx": model, **tensors, "data.npz": data.getvalue(), "case.json": _case(judged),
        "run.py": SCRIPT.read_bytes(), **judged.files,
    }  # fmt: skip


def _kinds(output: Output) -> dict[str, Array | None]:
    """Each of KINDS -> the array of an output; None where it has none."""
    undefined = output.undefined
    return {
        "output": output.value,
        "exact": output.exact,
        "allowed": absolute(output),
        "zeros": zero_signs.of(output),
        "undefined": None if undefined is None else undefined.where,
        "among": None if undefined is None else undefined.among,
    }


def _tensor(name: str, value: Array) -> bytes:
    content: bytes = numpy_helper.from_array(value, name).SerializeToString()
    return content


def _case(judged: Judged) -> bytes:
    selection = judged.selection
    fields = {
        "case": judged.words,
        "provider": judged.provider,
        "operator": judged.operator,
        "level": judged.level,
        "refused": judged.refusal,
        "undefined": judged.undefined,
        "session": judged.session,
        "selection": selection and {"names": selection.names, "axis": selection.axis, "ordered": selection.ordered},
    }
    return json.dumps(fields, indent=1).encode("ascii") + b"\n"


def true_outputs(built: BuiltCase) -> dict[str, Array]:
    """Output name -> the true value, the preferred one where several follow the standard; empty for a refusal."""
    return {output.name: output.value for output in _outputs(built)}


def build_case(case: Case) -> BuiltCase:
    """The case, built. Raises ReproError where its generator fails, whatever that raises."""
    try:
        return case.build()
    except Exception as error:
        raise ReproError(f"case '{case.id}' cannot be built: {type(error).__name__}: {error}") from error


def judged(built: BuiltCase) -> Judged:
    """What is right in a case."""
    truth, around = built.truth, built.node.surroundings
    is_graph = around is not None and around.level != ""
    return Judged(
        words=built.case.id,
        outputs=_outputs(built),
        operator="" if is_graph else built.node.op_type,
        level=LEVELS[around.level if around and around.level else "disabled"],
        refusal=truth.reason if isinstance(truth, Refusal) else "",
        undefined=truth.undefined if isinstance(truth, Outputs) else "",
        selection=truth if isinstance(truth, Selection) else None,
    )


def _outputs(built: BuiltCase) -> tuple[Output, ...]:
    match built.truth:
        case Outputs(outputs=outputs):
            return outputs
        case Selection(accepted=accepted):
            return tuple(map(Output, built.node.results, accepted[0]))
        case Refusal():
            return ()
