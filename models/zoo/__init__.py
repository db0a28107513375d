"""Architectures built by code, with seeded random weights: whole models that are small and true to their kind.

To add one, write a module with `ARCHITECTURES` and name it in `_MODULES`.
"""

from __future__ import annotations

from functools import cache

from epcheck.generators.nearest import ask_if_meant, find_nearest
from epcheck.models.zoo import exports
from epcheck.models.zoo.architecture import Architecture, ZooError
from epcheck.models.zoo.architectures import (
    bert,
    control_flow,
    decoder,
    local_function,
    lstm_tagger,
    mobilenet,
    resnet,
    sequences,
    ssd,
    super_resolution,
    unet,
    vit,
    whisper,
)

__all__ = ["Architecture", "ZooError", "all", "named"]

_MODULES = (
    mobilenet, resnet, unet, vit, bert, decoder, lstm_tagger, ssd, whisper, super_resolution, control_flow,
    local_function, sequences,
)  # fmt: skip


@cache
def all() -> tuple[Architecture, ...]:  # noqa: A001 - `zoo.all()` is how it is read
    """Every architecture, in a stable order."""
    return tuple(architecture for module in _MODULES for architecture in module.ARCHITECTURES)


def named(name: str) -> Architecture:
    """The architecture, or the export, of that name. Raises ZooError when there is none."""
    every = {architecture.name: architecture for architecture in (*all(), *exports.all())}
    if name not in every:
        meant = ask_if_meant(find_nearest(name, every, cutoff=0.4) or tuple(every))
        raise ZooError(f"unknown model '{name}'. {meant} `epcheck zoo list` prints all.")
    return every[name]
