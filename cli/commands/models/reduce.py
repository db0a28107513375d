"""`epcheck reduce`: the smallest part of a model that still fails, as a folder that anybody can run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from epcheck.cli.terminal import failure
from epcheck.cli.terminal.plain import safe
from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.models.bisection import bundle
from epcheck.models.bisection.options import BisectionOptions, Limits
from epcheck.models.bisection.reduce import Reduced, ReduceError, reduce_model
from epcheck.models.execution import sides
from epcheck.models.execution.asking import LEVELS, askers
from epcheck.models.execution.session import Level, Sessions
from epcheck.models.feeds import feeds
from epcheck.models.graph.feed import Feed

app = typer.Typer(add_completion=False)


def reduce_file(
    path: Path,
    candidate: Target,
    baseline: Target,
    given: Mapping[str, Feed] | None = None,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    level: Level = "all",
    limits: Limits | None = None,
) -> Reduced:
    """The smallest part of the model of a file on which the candidate differs from the baseline, or ends.

    given: the feeds; generated from the seed and for these sizes of dynamic dimensions otherwise. Raises ReduceError,
    ModelFileError, FeedError, DimsError, and TargetDown when a target cannot be started.
    """
    model = model_file.parse(path)
    size = model_file.bytes_of(model, path)
    inputs = {n: v for n, v in (given or feeds.generate(model, seed, dims)).items() if v is not None}
    folder = path.resolve().parent if any(True for _ in model_file.external_tensors(model)) else None
    with ExitStack() as resources:
        candidates, baselines = (resources.enter_context(Sessions(target)) for target in (candidate, baseline))
        asked = askers(candidates, baselines, folder, size)
        return reduce_model(model, inputs, *asked, BisectionOptions(level, limits or Limits(), folder))


@app.command()
def command(
    model: Annotated[Path, typer.Argument(help="An ONNX model that fails on the target.")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="Candidate. Default: the best.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Target that says what is right.")] = None,
    given: Annotated[
        Path | None, typer.Option("--feeds", help="An .npz or a folder of ONNX test data; generated otherwise.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of generated feeds.")] = 0,
    dim: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help="A dynamic dimension; repeat.")] = None,
    level: Annotated[str, typer.Option(help=f"Graph optimisation: {', '.join(LEVELS)}.")] = "all",
    sessions: Annotated[int, typer.Option(min=1, help="Sessions at most.")] = Limits.sessions,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds at most.")] = Limits.seconds,
    vulkan: Annotated[Path | None, typer.Option(metavar="ICD.json", help="Vulkan driver of the lab.")] = None,
    out: Annotated[Path, typer.Option(help="The folder that is made.")] = Path("reduced"),
) -> None:
    """Shrink a model to the smallest part that still fails on a target, with its real input values.

    Exit code: 0 a part that fails was written, 2 nothing fails, bad input, or it could not run.
    """
    console = Console(emoji=False, highlight=False, soft_wrap=True)
    with failure.one_sentence():
        chosen = next((one for one in LEVELS if one == level), None)
        if chosen is None:
            raise ReduceError(f"there is no level '{level}'; choose one of {', '.join(LEVELS)}")
        asked = sides.choose(target, baseline, vulkan)
        asked = asked.for_size(model_file.bytes_of(model_file.parse(model), model))
        if asked.baseline is None:
            raise ReduceError("a baseline must say what is right; name one with --baseline")
        limits = Limits(sessions=sessions, seconds=seconds)
        reduced = reduce_file(
            model, asked.candidate, asked.baseline, _read(given, model), seed=seed, dims=_sizes(dim), level=chosen,
            limits=limits,
        )  # fmt: skip
        folder = bundle.write(reduced, out, asked.candidate.provider or "CPUExecutionProvider")
        console.print(safe(bundle.words(reduced)))
        console.print(escape(f'{folder}: run it with: cd "{folder}" && python run.py'))


def _read(given: Path | None, path: Path) -> Mapping[str, Feed] | None:
    if given is None:
        return None
    (first, *_) = feeds.read(given, model_file.parse(path))
    return {name: value for name, value in first.inputs.items() if value is not None}


def _sizes(dim: list[str] | None) -> dict[str, int]:
    sizes = {}
    for text in dim or ():
        name, _, size = text.rpartition("=")
        if not name or not size.isdecimal():
            raise ReduceError(f"--dim {text}: write NAME=SIZE, for example batch=4")
        sizes[name] = int(size)
    return sizes
