"""The samples of RNN, GRU and LSTM, where they apply, and their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.oracle_math.activations import FUNCTIONS

RECURRENT = {name: function for name, function in FUNCTIONS.items() if name not in ("Selu", "Clip")}
"""The functions that the pages name."""


@dataclass(frozen=True)
class Cell:
    """What tells the three operators apart.

    gates: rows of hidden_size in W. activations: the defaults of one direction. outputs: all of them.
    peepholes: rows of hidden_size in P.
    """

    name: str
    gates: int
    activations: tuple[str, ...]
    outputs: tuple[str, ...]
    peepholes: int = 0


CELLS = {
    "RNN": Cell("RNN", 1, ("Tanh",), ("Y", "Y_h")),
    "GRU": Cell("GRU", 3, ("Sigmoid", "Tanh"), ("Y", "Y_h")),
    "LSTM": Cell("LSTM", 4, ("Sigmoid", "Tanh", "Tanh"), ("Y", "Y_h", "Y_c"), 3),
}


@dataclass(frozen=True, kw_only=True)
class RecurrentSample(Sample):
    """sizes: seq_length, batch_size, input_size, hidden_size. present: the optional inputs that the node has.

    lens: sequence_lens, where it is present. outputs: those asked for; None for all. attributes: of the
    node. values: what X looks like, see `_x`. broken: what makes the node invalid, see `_break`.
    """

    sizes: tuple[int, int, int, int] = (4, 3, 5, 6)
    present: tuple[str, ...] = ()
    lens: tuple[int, ...] = ()
    outputs: tuple[str, ...] | None = None
    attributes: tuple[tuple[str, Attribute], ...] = ()
    values: str = "small"
    broken: str = ""

    @property
    def directions(self) -> int:
        return 2 if dict(self.attributes).get("direction") == "bidirectional" else 1

    @property
    def layout(self) -> bool:
        return dict(self.attributes).get("layout") == 1


def samples(cell: Cell) -> Iterator[RecurrentSample]:
    yield RecurrentSample(name="defaults", every_dtype=True)
    yield from _directions(cell)
    yield from _inputs(cell)
    yield from _outputs(cell)
    yield from _activations(cell)
    yield from _flags(cell)
    yield from _sizes()
    yield from _values(cell)
    yield from map(expect_refusal, _list_refused(cell))


def _directions(cell: Cell) -> Iterator[RecurrentSample]:
    everything = _optional(cell)
    for direction in ("forward", "reverse", "bidirectional"):
        direction_attribute = (("direction", direction),)
        yield RecurrentSample(name=direction, attributes=direction_attribute, every_dtype=direction != "forward")
        yield RecurrentSample(
            name=f"{direction}_all_inputs",
            present=everything,
            lens=(2, 4, 1),
            attributes=direction_attribute,
            every_dtype=direction == "bidirectional",
        )
        yield RecurrentSample(name=f"{direction}_variable_lengths", present=("sequence_lens",), lens=(1, 4, 3),
                              attributes=direction_attribute)  # fmt: skip
        yield RecurrentSample(
            name=f"{direction}_variable_lengths_last_only",
            present=("sequence_lens", "B"),
            lens=(3, 1, 2),
            outputs=cell.outputs[1:],
            attributes=direction_attribute,
            every_dtype=direction == "reverse",
        )
        for layout in (0, 1):
            attributes = (*direction_attribute, ("layout", layout))
            yield RecurrentSample(name=f"{direction}_layout_{layout}", attributes=attributes)
            yield RecurrentSample(
                name=f"{direction}_layout_{layout}_all_inputs",
                present=everything,
                lens=(2, 4, 3),
                attributes=attributes,
            )


def _optional(cell: Cell) -> tuple[str, ...]:
    return ("B", "sequence_lens", "initial_h") + (("initial_c", "P") if cell.peepholes else ())


def _inputs(cell: Cell) -> Iterator[RecurrentSample]:
    for count in (1, 2):
        for present in combinations(_optional(cell), count):
            name = "with_" + "_and_".join(part.lower() for part in present)
            yield RecurrentSample(name=name, present=present, lens=(4, 4, 4), every_dtype=present in (("B",), ("P",)))
    yield RecurrentSample(name="with_all_inputs", present=_optional(cell), lens=(4, 4, 4), every_dtype=True)
    yield RecurrentSample(name="lengths_all_1", present=("sequence_lens",), lens=(1, 1, 1))
    yield RecurrentSample(name="no_hidden_size", attributes=(("hidden_size", ()),))


def _outputs(cell: Cell) -> Iterator[RecurrentSample]:
    for count in range(1, len(cell.outputs)):
        for asked in combinations(cell.outputs, count):
            for direction in ("forward", "bidirectional"):
                yield RecurrentSample(
                    name=f"only_{'_and_'.join(asked).lower()}_{direction}",
                    outputs=asked,
                    present=("B", "initial_h"),
                    attributes=(("direction", direction),),
                )


def _activations(cell: Cell) -> Iterator[RecurrentSample]:
    """Every function in every place; with alpha and beta where no other function could take them instead."""
    for position, _ in enumerate(cell.activations):
        for name, function in RECURRENT.items():
            names = (*cell.activations[:position], name, *cell.activations[position + 1 :])
            needed = any(map(np.isnan, function.parameters.values()))
            if not needed and (position == 0 or names != cell.activations):
                yield RecurrentSample(
                    name=f"activation_{'fgh'[position]}_{name.lower()}",
                    present=("B",),
                    attributes=(("activations", names),),
                )
            if function.parameters and position == 0:
                yield RecurrentSample(
                    name=f"activation_f_{name.lower()}_with_parameters",
                    present=("B", "initial_h"),
                    attributes=(("activations", names), *_parameters((name,))),
                )
    for combination in (("HardSigmoid", "ScaledTanh", "Affine"), ("Affine", "HardSigmoid", "ScaledTanh")):
        for direction in ("forward", "bidirectional"):
            names = combination[: len(cell.activations)]
            if direction == "bidirectional":
                names += tuple(reversed(names))
            yield RecurrentSample(
                name=f"activations_{names[0].lower()}_first_each_with_parameters_{direction}",
                attributes=(("activations", names), ("direction", direction), *_parameters(names)),
            )
    for direction in ("reverse", "bidirectional"):
        names = ("LeakyRelu", "Elu", "ThresholdedRelu")[: len(cell.activations)]
        names += ("Softsign", "Relu", "Softplus")[: len(cell.activations)] if direction == "bidirectional" else ()
        yield RecurrentSample(
            name=f"activations_differ_{direction}",
            present=("B",),
            attributes=(("activations", names), ("direction", direction), *_parameters(names)),
        )


def _parameters(names: tuple[str, ...]) -> tuple[tuple[str, Attribute], ...]:
    """alpha and beta for every function that takes them: different from the defaults and from each other."""
    values = {"Affine": (0.5, 0.25), "LeakyRelu": (0.25, 0), "ThresholdedRelu": (0.0625, 0), "ScaledTanh": (1.5, 0.5),
              "HardSigmoid": (0.25, 0.375), "Elu": (0.5, 0)}  # fmt: skip
    alphas = tuple(float(values[name][0]) for name in names if "alpha" in RECURRENT[name].parameters)
    betas = tuple(float(values[name][1]) for name in names if "beta" in RECURRENT[name].parameters)
    return (("activation_alpha", alphas),) + ((("activation_beta", betas),) if betas else ())


def _flags(cell: Cell) -> Iterator[RecurrentSample]:
    for name, clip in {"0_5": 0.5, "0_0625": 0.0625, "100": 100.0}.items():
        for direction in ("forward", "bidirectional"):
            yield RecurrentSample(
                name=f"clip_{name}_{direction}",
                present=("B",),
                attributes=(("clip", clip), ("direction", direction)),
                every_dtype=name == "0_5" and direction == "forward",
            )
    flag = {"GRU": "linear_before_reset", "LSTM": "input_forget"}.get(cell.name)
    if flag is None:
        return
    for value in (0, 1):
        for direction in ("forward", "reverse", "bidirectional"):
            attributes: tuple[tuple[str, Attribute], ...] = ((flag, value), ("direction", direction))
            yield RecurrentSample(name=f"{flag}_{value}_{direction}", attributes=attributes)
            yield RecurrentSample(
                name=f"{flag}_{value}_{direction}_all_inputs",
                present=_optional(cell),
                lens=(4, 2, 3),
                attributes=attributes,
                every_dtype=value == 1 and direction == "forward",
            )
        yield RecurrentSample(
            name=f"{flag}_{value}_clip", present=("B", "initial_h"), attributes=((flag, value), ("clip", 0.25))
        )


def _sizes() -> Iterator[RecurrentSample]:
    for name, sizes in {
        "all_sizes_1": (1, 1, 1, 1),
        "one_step": (1, 3, 5, 6),
        "batch_1": (4, 1, 5, 6),
        "input_1": (4, 3, 1, 6),
        "hidden_1": (4, 3, 5, 1),
        "odd_sizes": (7, 5, 17, 33),
        "hidden_64": (3, 2, 8, 64),
        "input_129": (2, 2, 129, 4),
        "batch_65": (2, 65, 3, 4),
        "long_sequence": (65, 2, 3, 4),
    }.items():
        for direction in ("forward", "bidirectional"):
            yield RecurrentSample(
                name=f"{name}_{direction}", sizes=sizes, present=("B",), attributes=(("direction", direction),)
            )


def _values(cell: Cell) -> Iterator[RecurrentSample]:
    yield RecurrentSample(name="zeros", values="zeros", present=("B",))
    yield RecurrentSample(name="saturated", values="saturated", every_dtype=True)
    yield RecurrentSample(name="nan_in_one_sequence", values="nan", every_dtype=True)
    yield RecurrentSample(name="nan_in_one_sequence_reverse", values="nan", attributes=(("direction", "reverse"),))
    yield RecurrentSample(name="nan_in_padding", values="nan_at_the_end", present=("sequence_lens",), lens=(4, 3, 4),
                          outputs=cell.outputs[1:])  # fmt: skip


def _list_refused(cell: Cell) -> Iterator[RecurrentSample]:
    for broken in ("x_rank_2", "w_input_size", "w_directions", "r_hidden_size", "b_length", "initial_h_batch",
                   "sequence_lens_count"):  # fmt: skip
        inputs = {"b_length": ("B",), "initial_h_batch": ("initial_h",), "sequence_lens_count": ("sequence_lens",)}
        yield RecurrentSample(name=broken, broken=broken, present=inputs.get(broken, ()), lens=(4, 4, 4))
    yield RecurrentSample(name="hidden_size_differs", attributes=(("hidden_size", 7),))
    yield RecurrentSample(name="unknown_direction", attributes=(("direction", "sideways"),))
    unknown = ("Signum", *cell.activations[1:])
    yield RecurrentSample(name="unknown_activation", attributes=(("activations", unknown),))
    if len(cell.activations) > 1:
        yield RecurrentSample(name="too_few_activations", attributes=(("activations", cell.activations[:1]),))


def bindings(cell: Cell, sample: RecurrentSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    attributes = schema.schema(cell.name, since_version).attributes
    if not all(name in attributes for name, _ in sample.attributes):
        return ()
    if dtypes != ("float32",):
        return (graph.INITIALIZER,) if sample.every_dtype else ()
    if since_version != newest_claimed_version(cell.name):
        return (graph.INITIALIZER,)
    return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)


def node(cell: Cell, sample: RecurrentSample, context: CaseContext) -> Node:
    """X [seq, batch, input], W [dirs, gates * hidden, input], R [dirs, gates * hidden, hidden] and what is optional.

    With layout 1 the batch comes first in X and in the initial states. sequence_lens is int32, the rest one dtype.
    """
    values = {name: value.astype(context.dtype) if value.dtype.kind == "f" else value
              for name, value in _arrays(cell, sample, context).items()}  # fmt: skip
    _break(sample.broken, values)
    signature = schema.schema(cell.name, context.since_version)
    inputs = [
        Operand(formal.name, values[formal.name], parameter=formal.name in ("W", "R", "B", "P"))
        if formal.name in values
        else None
        for formal in signature.inputs
    ]
    while inputs[-1] is None:
        inputs.pop()
    asked = cell.outputs if sample.outputs is None else sample.outputs
    outputs = [name if name in asked else "" for name in cell.outputs]
    while not outputs[-1]:
        outputs.pop()
    attributes = {"hidden_size": sample.sizes[3], **dict(sample.attributes)}
    if attributes["hidden_size"] == ():
        del attributes["hidden_size"]
    return Node(cell.name, "", context.since_version, tuple(inputs), tuple(outputs), attributes)


def _arrays(cell: Cell, sample: RecurrentSample, context: CaseContext) -> dict[str, Array]:
    """Weights shrink with the number of terms, so that the activations see all of their curve and not its ends."""
    _, batch, width, hidden = sample.sizes
    dirs, rows, rng = sample.directions, cell.gates * hidden, context.rng
    state = (batch, dirs, hidden) if sample.layout else (dirs, batch, hidden)
    values = {
        "X": _x(sample, context),
        "W": rng.uniform(-1.5, 1.5, (dirs, rows, width)) / np.sqrt(width),
        "R": rng.uniform(-1.5, 1.5, (dirs, rows, hidden)) / np.sqrt(hidden),
        "B": rng.uniform(-1, 1, (dirs, 2 * rows)),
        "sequence_lens": np.array(sample.lens, np.int32),
        "initial_h": rng.uniform(-1, 1, state),
        "initial_c": rng.uniform(-1, 1, state),
        "P": rng.uniform(-1, 1, (dirs, cell.peepholes * hidden)),
    }
    return {name: values[name] for name in ("X", "W", "R", *sample.present)}


def _x(sample: RecurrentSample, context: CaseContext) -> Array:
    seq, batch, width, _ = sample.sizes
    x = context.rng.uniform(-2, 2, (seq, batch, width))
    match sample.values:
        case "zeros":
            x[:] = 0
        case "saturated":
            x *= 100
        case "nan":
            x[1, 1, 0] = np.nan
        case "nan_at_the_end":
            x[-1, 1] = np.nan
    return x.swapaxes(0, 1) if sample.layout else x


def _break(broken: str, values: dict[str, Array]) -> None:
    match broken:
        case "x_rank_2":
            values["X"] = values["X"][0]
        case "w_input_size":
            values["W"] = values["W"][..., 1:]
        case "w_directions":
            values["W"], values["R"] = (np.repeat(values[name], 2, axis=0) for name in ("W", "R"))
        case "r_hidden_size":
            values["R"] = values["R"][..., 1:]
        case "b_length":
            values["B"] = values["B"][:, 1:]
        case "initial_h_batch":
            values["initial_h"] = values["initial_h"][:, 1:]
        case "sequence_lens_count":
            values["sequence_lens"] = values["sequence_lens"][1:]
