"""`epcheck zoo`: architectures with random weights, as models on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from epcheck.cli.terminal import failure
from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.zoo import exports

app = typer.Typer(add_completion=False, help="Small models of every kind, with random weights.", no_args_is_help=True)

ALL = "all"
"""The name that stands for every architecture."""


@app.command(name="list")
def list_architectures() -> None:
    """Print the architectures and, last, the real exports: name, what each stands for, its dynamic dimensions."""
    for one in (*zoo.all(), *exports.all()):
        dims = "".join(f"  {name}={','.join(map(str, values))}" for name, values in one.dims.items())
        typer.echo(f"{one.name:26} {one.kind}{dims}")


@app.command()
def write(
    name: Annotated[str, typer.Argument(help=f"An architecture or an export; '{ALL}': every architecture.")],
    out: Annotated[Path, typer.Option(help="The folder; each model gets one of its own inside it.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the feeds' random numbers.")] = 0,
) -> None:
    """Write the model, and feeds for it as ONNX test data: what `epcheck replay` reads."""
    with failure.one_sentence():
        for architecture in zoo.all() if name == ALL else (zoo.named(name),):
            for path in written(architecture, out / architecture.name, seed):
                typer.echo(str(path))


def written(architecture: zoo.Architecture, folder: Path, seed: int = 0) -> Iterator[Path]:
    """Write `model.onnx` and, for each combination of the architecture's dimensions, a `test_data_set_*`; gives the
    paths of what was written."""
    model = architecture.build()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString(deterministic=True))
    yield path
    for index, dims in enumerate(feeds.combinations(model, architecture.dims)):
        data = folder / f"test_data_set_{index}"
        data.mkdir(exist_ok=True)
        feeds.save(data, model, feeds.generate(model, seed, dims))
        yield data
