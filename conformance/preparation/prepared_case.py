"""Preparing a case: all that a run needs of it and no target changes, as plain data that can be kept or sent.

The model is built, the truth evaluated, the DirectML description evaluated, the facts for the record put into
words. That costs more than running a small node, and it always comes out the same; so it is done once on a machine.
"""

from __future__ import annotations

import hashlib
import traceback
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from epcheck.conformance.cache.row_groups import pack, unpack
from epcheck.conformance.comparison import compare
from epcheck.conformance.comparison.accuracy import measure_accuracy
from epcheck.conformance.preparation import case_facts as facts
from epcheck.conformance.preparation import model_parts
from epcheck.conformance.preparation.tensors import Tensor, tensor
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.outcome import bits
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.truth import (
    Exact,
    OneStep,
    Output,
    Outputs,
    Refusal,
    Selection,
    Truth,
    Ulp,
    Undefined,
    ZeroSigns,
)


class _PreparedCase(NamedTuple):
    case: Case
    facts: CaseFacts
    domain: str
    op_type: str
    beside: tuple[str, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, str]
    model: bytes
    shell: bytes
    graph: bytes
    prefix: str
    feeds: tuple[Tensor, ...]
    expected: tuple[list[list[Any]], bytes]
    emptiness: bytes
    must_be_refused: bool
    may_be_refused: bool
    size_bytes: int
    oracles: Mapping[str, str]
    answer: str
    expected_bits: str
    digest: bytes
    packed_truth: bytes
    level: str
    elsewhere: tuple[str, ...]


class PreparedCase(_PreparedCase):
    """A case, ready to be run and judged; a tuple, since a run makes ten thousand a second of rows of the cache.

    facts: for the record. domain, op_type: of the node under test. beside: the op_types of the nodes around it.
    outputs: names of the model's outputs. types: type constraint -> numpy dtype name. model: a serialized ModelProto.
    shell, graph, prefix: the same in two parts, for packs: all but the graph, and the graph with `prefix` before every
    name; `graph` is empty where the model cannot be taken apart.
    feeds: the graph's inputs. expected: what a pack's answer says of outputs that are surely right, to the last bit:
    [name with the prefix, dtype, shape] of each, and their bytes; empty where none are.
    emptiness: whether all outputs have elements (FULL), or none has (EMPTY); empty otherwise, and without outputs.
    may_be_refused: whether the standard leaves a part of the node undefined.
    oracles: what the DirectML description says of the truth; answer: the bits of its own. expected_bits: those of
    `expected`. digest: equal for equal model, feeds and truth. packed_truth: the truth, packed.
    level: of graph optimisation, where the case is about it; empty for none. elsewhere: the op_types that need not be
    on the provider.
    """

    @cached_property
    def truth(self) -> Truth:
        """What must come out."""
        truth: Truth = _truth(unpack(self.packed_truth))
        return truth


FULL, EMPTY = b"full", b"empty"

MEBIBYTE = 1 << 20

MOST_BYTES = 256 * MEBIBYTE
"""Model, inputs and outputs of a case, at most: hundreds of cases are under way at a time, and each is sent whole."""


@dataclass(frozen=True)
class UnbuiltCase:
    """A case whose generator failed: why, in words, and where."""

    case: Case
    why: str
    log: str


def prepare(case: Case) -> PreparedCase | UnbuiltCase:
    """Build a case and everything that follows from it. Whatever its generator raises costs this case alone."""
    try:
        prepared = of(case.build())
        if prepared.size_bytes > MOST_BYTES:
            why = f"the case has {_mebibytes(prepared.size_bytes)} of model, inputs and outputs"
            return UnbuiltCase(case, f"{why}; {_mebibytes(MOST_BYTES)} is the limit: make its tensors smaller", "")
        return prepared
    except Exception as error:
        why = " ".join(f"the case cannot be built: {type(error).__name__}: {error}".split())
        return UnbuiltCase(case, why, "".join(traceback.format_exception(error)).rstrip())


def _mebibytes(count: int) -> str:
    return f"{count / MEBIBYTE:,.0f} MiB"


def of(built: BuiltCase) -> PreparedCase:
    """What follows from a case that is built."""
    feeds = tuple(tensor(name, array) for name, array in built.feeds.items())
    packed_truth = pack(_plain(built.truth))
    around = built.node.surroundings
    level, elsewhere = (around.level, around.elsewhere) if around else ("", ())
    parts = (built.model, feeds, packed_truth, *((level,) if level else ()))
    digest = hashlib.sha256(pack(parts)).digest()
    prefix = f"{hashlib.sha256(digest + built.case.id.encode()).hexdigest()[:12]}/"  # two cases may be the same model
    shell, graph = model_parts.parts(built.model, prefix)
    outputs = _outputs(built)
    sure = outputs and compare.are_right(built.truth, outputs)  # type: ignore[arg-type]  # a refusal has none
    opinions, answer = directml_opinion(built)
    best = None if isinstance(built.truth, Refusal) else measure_accuracy(built.truth, outputs)
    return PreparedCase(
        case=built.case,
        facts=facts.of(built, best),
        domain=built.node.domain,
        op_type=built.node.op_type,
        beside=_beside(built),
        outputs=built.node.results,
        types=dict(built.types),
        model=built.model,
        shell=shell,
        graph=graph,
        prefix=prefix,
        feeds=feeds,
        expected=_as_answered(prefix, outputs) if sure else ([], b""),
        emptiness=_emptiness(outputs.values()),
        must_be_refused=isinstance(built.truth, Refusal),
        may_be_refused=isinstance(built.truth, Outputs) and built.truth.undefined != "",
        size_bytes=len(built.model) + sum(len(feed[-1]) for feed in feeds) + sum(a.nbytes for a in outputs.values()),
        oracles=opinions,
        answer=answer,
        expected_bits=bits(outputs) if sure else "",
        digest=digest,
        packed_truth=packed_truth,
        level=level,
        elsewhere=elsewhere,
    )


def _beside(built: BuiltCase) -> tuple[str, ...]:
    around = built.node.surroundings
    return tuple(node.op_type for node in (*around.before, *around.after)) if around else ()


def _as_answered(prefix: str, outputs: Mapping[str, Array]) -> tuple[list[list[Any]], bytes]:
    tensors = [tensor(prefix + name, array) for name, array in outputs.items()]
    return [[name, dtype, list(shape)] for name, dtype, shape, _ in tensors], b"".join(data for *_, data in tensors)


PreparedRow: Any = tuple[(str, *list(typing.get_type_hints(_PreparedCase).values())[2:])]  # type: ignore[misc]
"""The type of what `to_row` gives."""


def to_row(prepared: PreparedCase) -> tuple[Any, ...]:
    """The prepared case as the cache has it, in nothing but builtin types: the text of its facts, and all that follows
    them."""
    _, facts, *others = prepared
    return facts.text, *others


def from_row(case: Case, row: Any) -> PreparedCase:
    """The case that `to_row` was given. Raises ValueError when the row is none."""
    if not isinstance(row, tuple) or len(row) != len(_PreparedCase._fields) - 1:
        raise ValueError(f"not a prepared case: {str(row)[:80]}")
    return PreparedCase._make((case, CaseFacts.from_text(case.id, row[0]), *row[1:]))


_CLASSES = (Outputs, Output, Selection, Refusal, Exact, Ulp, Citation, OneStep, ZeroSigns, Undefined)
_FIELDS = {cls: tuple(f.name for f in fields(cls)) for cls in _CLASSES}
_TYPES: Mapping[str, Callable[..., object]] = {cls.__name__: cls for cls in (*_CLASSES, CitationKind, Publisher)}
_ARRAY, _TUPLE = "array", "tuple"


def _plain(value: Any) -> Any:
    """A truth in builtin types: dataclasses, enumerations, arrays and tuples are lists that begin with their name. A
    scalar of numpy, which arithmetic makes of arrays without dimensions, is such an array, or a float."""
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, float) else np.asarray(value)
    if isinstance(value, np.ndarray):
        return [_ARRAY, *tensor("", value)[1:]]
    if isinstance(value, Enum):
        return [type(value).__name__, value.value]
    if type(value) in _FIELDS:
        return [type(value).__name__, *[_plain(getattr(value, name)) for name in _FIELDS[type(value)]]]
    return [_TUPLE, *map(_plain, value)] if isinstance(value, tuple) else value


def _truth(value: Any) -> Any:
    """What `_plain` was given."""
    if type(value) is not list:
        return value
    if value[0] == _ARRAY:
        _, dtype, shape, data = value
        return np.frombuffer(data, dtype).reshape(shape)
    items = [_truth(item) for item in value[1:]]
    return tuple(items) if value[0] == _TUPLE else _TYPES[value[0]](*items)


def _outputs(built: BuiltCase) -> dict[str, Array]:
    """Output name -> the true array, the preferred one where several are right; none of a case that must be refused."""
    match built.truth:
        case Outputs(outputs):
            return {output.name: output.value for output in outputs}
        case Selection():
            return dict(zip(built.truth.names, built.truth.accepted[0], strict=True))
        case _:
            return {}


def _emptiness(arrays: Iterable[Array]) -> bytes:
    sizes = [array.size for array in arrays]
    if sizes and all(sizes):
        return FULL
    return EMPTY if sizes and not any(sizes) else b""


def directml_opinion(built: BuiltCase) -> tuple[dict[str, str], str]:
    """What the DirectML description says of the truth, by its name, and the bits of its own answer."""
    if built.lowering is None or isinstance(built.truth, Refusal):
        return {}, ""
    description, outputs = built.lowering.description, _outputs(built)
    try:
        with np.errstate(all="ignore"):  # NaN and infinities are answers as others are
            results = description.evaluate(*built.lowering.feeds)
            answer = {
                name: result.astype(truth.dtype).reshape(truth.shape)
                for (name, truth), result in zip(outputs.items(), results, strict=True)
            }
    except ValueError as error:  # a ConstraintViolation, or values for which the page defines nothing
        return {description.NAME: f"cannot: {error}"}, ""
    wrong = compare.differences(built.truth, answer)
    words = f"disagrees: {wrong[0].output}: {wrong[0].reason}" if wrong else "agrees"
    return {description.NAME: words}, bits(answer)
