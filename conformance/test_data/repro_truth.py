"""What the folder of a case says is right, besides its outputs: `case.json`, and the files that `repro` lists.

A stranger may have written them: sizes, shapes and types are checked before anything is made of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.test_data.repro import KINDS
from epcheck.conformance.workers.program import protocol
from epcheck.generators.array import Array
from epcheck.generators.citation import statement
from epcheck.generators.truth import OneStep, Output, Selection, Ulp, Undefined, ZeroSigns

CASE_BYTES = 1 << 20
"""How large a case.json may be."""

ACCEPTED = 64
"""Pairs of values and indices of a folder that are read."""


@dataclass(frozen=True)
class Stated:
    """What a case.json says.

    level: of graph optimisation at which it failed, empty where there is none or where it is the variant's. variant:
    the one that the folder was written for; empty for none. refused: the rule for which the model must be refused;
    undefined: what the standard leaves open, so that it may be; each empty where there is none. selection: whether it
    is one of `axis`, whose order is defined where it is `ordered`; None where the outputs themselves are right.
    """

    level: str = ""
    variant: str = ""
    refused: str = ""
    undefined: str = ""
    selection: tuple[int, bool] | None = None


def read_stated(folder: Path) -> Stated | None:
    """What the case.json of a folder says; None where there is none. Raises ModelFileError."""
    path = folder / "case.json"
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > CASE_BYTES:
            raise ValueError
        fields = json.loads(path.read_bytes())
        variant = str(fields.get("session", {}).get("variant", ""))
        level = next((name for name, word in protocol.LEVELS.items() if word == fields.get("level")), "")
        selection = fields.get("selection")
        return Stated(
            "" if variant else level,
            variant,
            str(fields.get("refused") or ""),
            str(fields.get("undefined") or ""),
            None if selection is None else _selection_fields(selection),
        )
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise ModelFileError(f"'{path}' is no case.json as `epcheck repro` writes it; write the folder again") from None


def _selection_fields(fields: Mapping[str, Any]) -> tuple[int, bool]:
    axis, ordered = fields["axis"], fields["ordered"]
    if type(axis) is not int or type(ordered) is not bool:
        raise ValueError
    return axis, ordered


def selection(data: Path, names: tuple[str, ...], axis: int, ordered: bool) -> Selection:
    """What is accepted of the outputs `names`, values and indices, by the files of a data set. Raises ModelFileError,
    also where these do not fit together."""
    source = data / "selected_from.pb"
    if not source.is_file():
        raise ModelFileError(f"'{data}' has no selected_from.pb; write the folder again, with `epcheck repro`")
    whole = model_file.load_tensor(source)
    pairs: list[tuple[Array, Array]] = []
    while len(pairs) < ACCEPTED and (data / f"accepted_{len(pairs)}_0.pb").exists():
        values, indices = (model_file.load_tensor(data / f"accepted_{len(pairs)}_{part}.pb") for part in range(2))
        pairs.append((values, indices))
    fits = len(names) == 2 and 0 <= axis < whole.ndim and bool(pairs)
    shapes = {part.shape for pair in pairs for part in pair}
    if not fits or len(shapes) != 1 or any(indices.dtype != np.int64 for _, indices in pairs):
        raise ModelFileError(f"'{data}': selected_from.pb and accepted_*.pb do not fit together")
    (shape,) = shapes
    if shape[:axis] + shape[axis + 1 :] != whole.shape[:axis] + whole.shape[axis + 1 :]:
        raise ModelFileError(f"'{data}': accepted_*.pb must have the shape of selected_from.pb but for axis {axis}")
    return Selection(whole, axis, tuple(pairs), ordered, (names[0], names[1]))


@dataclass(frozen=True)
class Bounds:
    """What a folder of ours says of its outputs.

    Index of an output -> float64 of its shape. allowed: how far each element may be from the exact result; where there
    is none, it must be equal. exact: that result, where it is not the output itself. zeros: bool, where a zero must
    have the sign of the output. undefined: bool, where the standard defines nothing; among: what may stand there.
    """

    allowed: Mapping[int, Array]
    exact: Mapping[int, Array]
    zeros: Mapping[int, Array]
    undefined: Mapping[int, Array]
    among: Mapping[int, Array]

    @classmethod
    def of(cls, data: Path, count: int) -> Self:
        """Raises ModelFileError."""
        kinds: dict[str, dict[int, Array]] = {}
        for kind in KINDS[1:]:
            files = ((at, data / f"{kind}_{at}.pb") for at in range(count))
            kinds[kind] = {at: model_file.load_tensor(file) for at, file in files if file.exists()}
        return cls(**kinds)

    def output(self, at: int, name: str, value: Array) -> Output:
        """Raises ModelFileError where the shapes differ."""
        allowed, exact, signed = self.allowed.get(at), self.exact.get(at), self.zeros.get(at)
        if (where := self.undefined.get(at)) is not None and where.shape == value.shape:
            return Output(name, value, undefined=Undefined(where.astype(np.bool_), self.among.get(at)))
        if any(array is not None and array.shape != value.shape for array in (allowed, exact, signed)):
            raise ModelFileError(
                f"allowed_{at}.pb, exact_{at}.pb and zeros_{at}.pb must have the shape of output_{at}.pb"
            )
        if allowed is None or value.dtype.kind not in "iuf":
            return Output(name, value)
        if value.dtype.kind == "f":
            zeros = None if signed is None else ZeroSigns(f"zeros_{at}.pb", signed.astype(np.bool_))
            bound = Ulp(0.0, (statement(f"or as near as allowed_{at}.pb says"),), allowed)
            return Output(name, value, bound, exact, zeros)
        return Output(name, value, OneStep(allowed))
