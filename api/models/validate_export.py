"""Does an export compute what its module does; if not, who departs first: exporter, optimiser, converter, quantiser or
target."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from epcheck.api.models.validate import ValidateOptions, Validation, validate
from epcheck.api.option import OptionError
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.test_data import model_file
from epcheck.models.feeds import feed_files
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.inlining import inline_file
from epcheck.models.validation.departures import QUANTISES, Comparison, compare_with_reference
from epcheck.models.validation.framework_values import cast_inputs, cast_outputs, compute_values

EXPORTER, OPTIMISER, CONVERTER, QUANTISER = "exporter", "optimiser", "converter", "quantiser"
"""Who makes a model. A converter makes values in float16 or bfloat16."""

TARGET = "target"


@dataclass(frozen=True)
class ExportStage:
    """One step from the module to the last model. name: EXPORTER, OPTIMISER, CONVERTER or QUANTISER. model: what it
    made. comparison: with what that was made from, node by node."""

    name: str
    model: Path
    comparison: Comparison


@dataclass(frozen=True)
class ExportValidation:
    """stages: in their order. validation: of the last model on the target."""

    stages: tuple[ExportStage, ...]
    validation: Validation

    @property
    def departed(self) -> str:
        """Who departs first: the name of a stage, or TARGET; empty where nobody does. Where no node departs, and the
        outputs are not those of the module all the same, it is the last stage."""
        if self.validation.status in ("right", "unjudged"):
            last = ""
        else:
            last = self.stages[-1].name if self.validation.is_model_at_fault else TARGET
        return next((stage.name for stage in self.stages if stage.comparison.departures), last)

    @property
    def status(self) -> str:
        """'wrong' where a stage departs, else that of the validation."""
        return "wrong" if self.departed not in ("", TARGET) else self.validation.status

    @property
    def headline(self) -> str:
        """The result in a sentence: who departs first, at which node, with its value and the one that it should be."""
        for stage in self.stages:
            if stage.comparison.departures:
                first, *more = stage.comparison.departures
                rest = f"; {len(more)} more place{'s' if len(more) > 1 else ''} of {stage.model.name}" if more else ""
                return f"the {stage.name} departs first: {first.words}{rest}"
        kept = ", ".join(f"{stage.name}: {stage.comparison.words}" for stage in self.stages)
        return f"{self.validation.headline}; no stage departs ({kept})"


def validate_export(
    module: Any,
    args: Sequence[Any],
    exported: Any,
    *,
    kwargs: Mapping[str, Any] | None = None,
    options: ValidateOptions | None = None,
    folder: Path | None = None,
    progress: Progress = SILENT,
) -> ExportValidation:
    """Compare every stage between a module and a target with the one before it, and validate the last model.

    module: a torch.nn.Module, a torch.export.ExportedProgram, an estimator or pipeline of scikit-learn, or a function
    of arrays. args, kwargs: what it was exported with. exported: the path of an ONNX file, an onnx.ModelProto, or what
    `torch.onnx.export` returned; or a sequence of these, each made from the one before: an export, what an optimiser
    made of it, what a converter to float16 or a quantiser made of that. options: targets, baseline and the like; its
    models, feeds, expect and reference are ours. folder: for the models, feeds and values that are written; without one
    they are gone after the call, and commands that the validation names do not find them.

    Values of a torch module are compared by FX node, those of a traced export by module, those of a pipeline by step;
    outputs always, but those of a quantised model, of which only nodes are compared. The module computes in its own
    dtype. What a node may be off is in `epcheck.models.validation.departures`. Raises OptionError, FrameworkError,
    ModelFileError, what `validate` raises, and what the module itself raises.
    """
    stages = list(exported) if isinstance(exported, list | tuple) else [exported]
    if not stages:
        raise OptionError("nothing is exported: pass the path of a model, or what torch.onnx.export returned")
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        paths = [_save_stage(stage, place / f"stage_{at}.onnx") for at, stage in enumerate(stages)]
        models = [_read_stage(path) for path in paths]
        computed = compute_values(module, args, kwargs or {}, models[0])
        feeds, values, outputs = (place / f"{name}.npz" for name in ("inputs", "module", "outputs"))
        feed_files.write_arrays(feeds, cast_inputs(computed.inputs, models[-1]))
        feed_files.write_arrays(values, computed.values)
        feed_files.write_arrays(outputs, cast_outputs(computed.outputs, models[-1]))
        origins = [values, *paths]
        names = [EXPORTER, *map(_name_stage, models, models[1:])]
        earlier = [
            compare_with_reference(
                model, Trial("the arguments", cast_inputs(computed.inputs, model), ()), origin, path.parent
            )
            for model, origin, path in zip(models[:-1], origins, paths, strict=False)
        ]
        asked = replace(
            options or ValidateOptions(()),
            models=(paths[-1],),
            feeds=feeds,
            expect=outputs if computed.outputs and QUANTISER not in names else None,
            reference=origins[-2],
        )
        validation = validate(asked, progress=progress).validation
    assert validation.reference is not None
    return ExportValidation(tuple(map(ExportStage, names, paths, (*earlier, validation.reference))), validation)


def _save_stage(stage: Any, path: Path) -> Path:
    """The path of a stage's model, written where it is a program or a model of its own."""
    save: Callable[[Path], None] | None = getattr(stage, "save", None)
    if isinstance(stage, str | Path):
        return Path(stage)
    if isinstance(stage, onnx.ModelProto):
        try:
            onnx.save(stage, path)
        except Exception as error:  # protobuf's own type depends on its version
            raise OptionError(
                "a model in memory cannot be serialized, probably because it has more than 2 GiB: save it with "
                f"external data and pass its path ({error})"
            ) from None
    elif save is not None:
        save(path)
    else:
        raise OptionError(f"a {type(stage).__name__} is no export: pass a path, an onnx.ModelProto, or what "
                          "torch.onnx.export returned")  # fmt: skip
    return path


def _read_stage(path: Path) -> onnx.ModelProto:
    """The model of a stage. Its weights from MAPPED_BYTES on stay in the file in which they are, whatever the size of
    the model. Raises ModelFileError."""
    return inline_file(path, model_file.embed_data(model_file.parse(path), path, model_file.MAPPED_BYTES))


def _name_stage(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """Who made a model from another: a quantiser makes more nodes with quantised values or weights, a converter weights
    or inputs of fewer bits."""
    quantising = [sum(node.op_type.startswith(QUANTISES) for node in model.graph.node) for model in (before, after)]
    if quantising[1] > quantising[0]:
        return QUANTISER
    return CONVERTER if _has_halves(after) and not _has_halves(before) else OPTIMISER


def _has_halves(model: onnx.ModelProto) -> bool:
    """Whether a weight, a Cast or an input is in float16 or bfloat16."""
    types = {tensor.data_type for tensor in model.graph.initializer}
    types |= {value.type.tensor_type.elem_type for value in model.graph.input}
    types |= {each.i for node in model.graph.node if node.op_type == "Cast" for each in node.attribute}
    return not types.isdisjoint((onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16))
