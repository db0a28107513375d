"""Nodes of models, and what the fuzzer found, as cases of the suite: they weigh in the runs of a team."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from epcheck.api.models.examining.examination import examine
from epcheck.api.models.option_types import Dims, FeedsFile, StepDeadline
from epcheck.api.models.parsing import only_target
from epcheck.api.models.validate import find_models
from epcheck.api.option import Option
from epcheck.api.option_types import OwnProcess, Vulkan
from epcheck.api.progress import SILENT, Progress
from epcheck.conformance.scheduling import stream
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators.error import EpcheckError
from epcheck.generators.sources.harvested import HarvestError as HarvestError
from epcheck.models.execution.evaluators import BASELINE
from epcheck.models.execution.session import DEADLINE_S, ModelSessions
from epcheck.models.feeds.trials import Feeding
from epcheck.models.harvest import fuzz_folder, harvest_folder, nodes
from epcheck.models.harvest.harvest import HarvestedModel, harvest_model
from epcheck.models.harvest.nodes import NotHarvested as NotHarvested


@dataclass(frozen=True)
class HarvestOptions:
    """Which models or faults, and where their cases go.

    models: files, and folders of which all `.onnx` files are taken; or what `fuzz` found: the folder of a fault, its
    `node.jsonl`, or the folder of a search. out: the folder with all cases that were harvested into it. target: the
    provider that runs the models, so that the values at each node are known; None for the CPU provider. feeds, dims,
    seeds: what the models are fed, as of `validate`; every set of feeds counts. deadline_s: seconds for each step of a
    session. own_process: examine each model in a process of its own.
    """

    models: Annotated[
        tuple[Path, ...],
        Option("ONNX models, folders of models, and folders of epcheck fuzz.", argument=True, metavar="MODEL..."),
    ]
    out: Annotated[Path, Option("Folder for the cases.", file=False)] = Path("harvested")
    target: Annotated[
        str | Target | None,
        Option("Target that runs the models.", flags=("--target", "-t"), default="cpu", parse=only_target, many=True),
    ] = None
    feeds: FeedsFile = None
    dims: Dims = field(default_factory=dict)
    seeds: Annotated[
        tuple[int, ...], Option("Seed of generated feeds; repeat for more. Default: 0.", flags=("--seed",))
    ] = (0,)
    deadline_s: StepDeadline = DEADLINE_S
    vulkan: Vulkan = None
    own_process: OwnProcess = True


@dataclass(frozen=True)
class ModelHarvest:
    """What came of a model, or of what the fuzzer found. model: its name; a folder or file of the fuzzer as the caller
    named it. total: its nodes. cases: what they make, those that compute alike as one. new: cases that the folder did
    not have. left_out: nodes that make none, each with the reason. trouble: why the model gave nothing; empty where
    it did."""

    model: str
    total: int
    cases: int
    new: int
    left_out: tuple[NotHarvested, ...]
    trouble: str = ""

    @property
    def reasons(self) -> tuple[tuple[str, int], ...]:
        """Why nodes were left out, and how many."""
        return tuple(nodes.reasons(self.left_out))


@dataclass(frozen=True)
class Harvest:
    """What a call gave. folder: which `RunOptions.source` takes. cases: of all models in it."""

    folder: Path
    cases: int
    models: tuple[ModelHarvest, ...]

    @property
    def troubled(self) -> tuple[ModelHarvest, ...]:
        """The models that gave nothing."""
        return tuple(model for model in self.models if model.trouble)


def harvest(options: HarvestOptions, *, progress: Progress = SILENT) -> Harvest:
    """Make cases of the nodes of models, and add them to a folder. Harvesting a model again replaces what the folder
    has of a model of that name. What the fuzzer found is added, with all values, and replaces nothing. Of several
    models one that does not run, or cannot be read, is a part of the result, and the others are harvested; what the
    folder has of it stays.

    Raises ModelFileError, ExaminationError, FeedError, DimsError, HarvestError for files and options that cannot be
    used, where no other model can be harvested; OptionError where there is no model; TargetError, TargetDown; OSError
    when the folder cannot be written.
    """
    searched = {path: files for path in options.models if (files := fuzz_folder.find_files(path))}
    faults = [fuzz_folder.read_files(str(path), files) for path, files in searched.items()]
    models = list(find_models([path for path in options.models if path not in searched]))
    found = []
    cases = 0
    with progress.working() as say:
        for name, model in _harvest_models(models, options, say):
            if isinstance(model, EpcheckError):
                found.append(ModelHarvest(name, 0, 0, 0, (), str(model)))
                continue
            kept = harvest_folder.write(options.out, model)
            cases = kept.cases
            found.append(ModelHarvest(name, model.total, len(model.nodes), kept.new, model.left_out))
        for each in faults:
            kept = harvest_folder.write_faults(options.out, each)
            cases = kept.cases
            found.append(ModelHarvest(each.name, each.total, len(each.lines), kept.new, each.left_out))
    result = Harvest(options.out, cases, tuple(found))
    if result.troubled and len(result.troubled) == len(found):
        reasons = "; ".join(f"{model.model}: {model.trouble}" for model in result.troubled)
        raise HarvestError(f"none of {len(found)} models can be harvested: {reasons}")
    return result


def _harvest_models(
    models: Sequence[tuple[str, Path]], options: HarvestOptions, say: Callable[[str], None]
) -> Iterator[tuple[str, HarvestedModel | EpcheckError]]:
    """What each model gives, under its name, or why it gives nothing where there are others. Without models no target
    is started."""
    if not models:
        return
    target = options.target
    if not isinstance(target, Target):
        ((target,), _) = stream.choose((target or BASELINE,), "none", options.vulkan)
    for name, path in models:
        request = _Request(path, name, options, target)
        try:
            if options.own_process:
                model = _with_name(examine(_harvest, request, path, say, options.deadline_s, (target,)), name)
            else:
                model = _harvest(request, say)
        except TargetDown:
            raise
        except EpcheckError as error:
            if len(options.models) == len(models) == 1:
                raise
            yield name, error
        else:
            yield name, model


def _with_name(model: HarvestedModel, name: str) -> HarvestedModel:
    """The harvest under our own name of the model: under another one it would replace what the folder has of that."""
    return replace(
        model, name=name,
        nodes=tuple(replace(node, models={name: sum(node.models.values())}) for node in model.nodes),
        left_out=tuple(replace(each, model=name) for each in model.left_out),
    )  # fmt: skip


@dataclass(frozen=True)
class _Request:
    path: Path
    name: str
    options: HarvestOptions
    target: Target


def _harvest(request: _Request, say: Callable[[str], None]) -> HarvestedModel:
    options = request.options
    feeding = Feeding(options.feeds, options.seeds, options.dims)
    with ModelSessions(request.target, options.deadline_s) as sessions:
        return harvest_model(request.path, request.name, feeding, sessions, say)
