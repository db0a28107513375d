"""Preparing a case: all that a run needs of it and no target changes, as plain data that can be kept or sent.

The model is built, the truth evaluated, DirectML's description asked for its opinion, the facts for the record put into
words. That costs more than running a small node, and it always comes out the same; so it is done once on a machine.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from epcheck.conformance import cache, compare, facts, pack
from epcheck.conformance.outcome import bits
from epcheck.conformance.record import CaseFacts
from epcheck.generators.case import (
    Array,
    BuiltCase,
    Case,
    Exact,
    OneStep,
    Output,
    Outputs,
    Refusal,
    Selection,
    Truth,
    Ulp,
)


class Tensor(NamedTuple):
    """An array as it travels. dtype: numpy's name. data: little-endian."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class Prepared:
    """A case, ready to be run and judged.

    domain, op_type: of the node under test. outputs: names of the model's outputs. types: type constraint -> numpy
    dtype name. model: a serialized ModelProto. shell, graph, prefix: the same in two parts, for packs: all but the
    graph, and the graph with `prefix` before every name; `graph` is empty where the model cannot be taken apart.
    feeds: the graph's inputs. oracles: what the DirectML description says of the truth; answer: the bits of its own.
    digest: equal for equal model, feeds and truth.
    """

    case: Case
    domain: str
    op_type: str
    outputs: tuple[str, ...]
    types: Mapping[str, str]
    model: bytes
    shell: bytes
    graph: bytes
    prefix: str
    feeds: tuple[Tensor, ...]
    truth: Truth
    facts: CaseFacts
    oracles: Mapping[str, str]
    answer: str
    digest: bytes

    @property
    def must_be_refused(self) -> bool:
        """Whether the only right answer is a clean error."""
        return isinstance(self.truth, Refusal)

    @property
    def truth_arrays(self) -> tuple[Array, ...]:
        """The true outputs, the preferred ones where several are right; none of a case that must be refused."""
        return _arrays(self.truth)

    @property
    def size_bytes(self) -> int:
        """What the case costs in memory: its model, its feeds, its outputs."""
        return len(self.model) + sum(len(f.data) for f in self.feeds) + sum(a.nbytes for a in self.truth_arrays)


@dataclass(frozen=True)
class Unprepared:
    """A case whose generator failed: why, in words, and where."""

    case: Case
    why: str
    log: str


def prepare(case: Case) -> Prepared | Unprepared:
    """Build a case and everything that follows from it. Whatever its generator raises costs this case alone."""
    try:
        return of(case.build())
    except Exception as error:
        why = " ".join(f"the case cannot be built: {type(error).__name__}: {error}".split())
        return Unprepared(case, why, "".join(traceback.format_exception(error)).rstrip())


def of(built: BuiltCase) -> Prepared:
    """What follows from a case that is built."""
    feeds = tuple(tensor(name, array) for name, array in built.feeds.items())
    truth = pickle.dumps(_plain(built.truth), pickle.HIGHEST_PROTOCOL)
    digest = hashlib.sha256(pickle.dumps((built.model, feeds, truth), pickle.HIGHEST_PROTOCOL)).digest()
    prefix = f"{digest[:6].hex()}/"
    shell, graph = pack.parts(built.model, prefix)
    said, answer = _directml(built)
    return Prepared(
        case=built.case,
        domain=built.node.domain,
        op_type=built.node.op_type,
        outputs=built.node.outputs,
        types=built.types,
        model=built.model,
        shell=shell,
        graph=graph,
        prefix=prefix,
        feeds=feeds,
        truth=built.truth,
        facts=facts.of(built),
        oracles=said,
        answer=answer,
        digest=digest,
    )


def tensor(name: str, array: Array) -> Tensor:
    """An array as it travels."""
    return Tensor(
        name, array.dtype.name, array.shape, array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    )


def key(case: Case) -> bytes:
    """Where the prepared case is in the cache."""
    return cache.key("prepared", "", case.id)


def to_row(prepared: Prepared) -> bytes:
    """The prepared case as the cache has it: a pickle of nothing but builtin types."""
    p = prepared
    return pickle.dumps(
        (p.domain, p.op_type, p.outputs, dict(p.types), p.model, p.shell, p.graph, p.prefix, tuple(map(tuple, p.feeds)),
         _plain(p.truth), p.facts.text, dict(p.oracles), p.answer, p.digest),
        pickle.HIGHEST_PROTOCOL,
    )  # fmt: skip


def from_row(case: Case, row: bytes) -> Prepared:
    """The case that `to_row` was given. Raises ValueError when the row is none."""
    try:
        domain, op_type, outputs, types, model, shell, graph, prefix, feeds, truth, text, oracles, answer, digest = (
            plain_pickle(row)
        )
        return Prepared(
            case, domain, op_type, outputs, types, model, shell, graph, prefix, tuple(Tensor(*feed) for feed in feeds),
            _truth(truth), CaseFacts.from_text(case.id, text), oracles, answer, digest,
        )  # fmt: skip
    except (pickle.UnpicklingError, TypeError, KeyError, IndexError, EOFError, AttributeError) as error:
        raise ValueError(f"not a prepared case: {error!r}") from error


def plain_pickle(data: bytes) -> Any:
    """What a pickle of builtin types holds; UnpicklingError for anything more."""
    return _PlainUnpickler(io.BytesIO(data)).load()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no builtin type")


_TRUTHS = {cls.__name__: cls for cls in (Outputs, Output, Selection, Refusal, Exact, Ulp, OneStep)}
_FIELDS = {cls: tuple(f.name for f in fields(cls)) for cls in _TRUTHS.values()}
_ARRAY = "array"


def _plain(value: Any) -> Any:
    """A truth in builtin types: dataclasses and arrays are tuples that begin with their name."""
    if isinstance(value, np.ndarray):
        return (_ARRAY, *tensor("", value)[1:])
    if type(value) in _FIELDS:
        return (type(value).__name__, *(_plain(getattr(value, name)) for name in _FIELDS[type(value)]))
    return ["tuple", *map(_plain, value)] if isinstance(value, tuple) else value


def _truth(value: Any) -> Any:
    """What `_plain` was given."""
    if type(value) is tuple:
        if value[0] == _ARRAY:
            _, dtype, shape, data = value
            return np.frombuffer(data, dtype).reshape(shape)
        return _TRUTHS[value[0]](*[_truth(item) for item in value[1:]])
    return tuple([_truth(item) for item in value[1:]]) if type(value) is list else value


def _arrays(truth: Truth) -> tuple[Array, ...]:
    match truth:
        case Outputs(outputs):
            return tuple(output.value for output in outputs)
        case Selection():
            return truth.accepted[0]
        case _:
            return ()


def _directml(built: BuiltCase) -> tuple[dict[str, str], str]:
    """What the DirectML description says of the truth, by its name, and the bits of its own answer."""
    if built.lowering is None or isinstance(built.truth, Refusal):
        return {}, ""
    description, expected = built.lowering.description, _arrays(built.truth)
    try:
        results = description.evaluate(*built.lowering.feeds)
        answer = {
            name: result.astype(truth.dtype).reshape(truth.shape)
            for name, result, truth in zip(built.node.outputs, results, expected, strict=True)
        }
    except ValueError as error:  # a ConstraintViolation, or values for which the page defines nothing
        return {description.NAME: f"cannot: {error}"}, ""
    wrong = compare.differences(built.truth, answer)
    said = f"disagrees: {wrong[0].output}: {wrong[0].reason}" if wrong else "agrees"
    return {description.NAME: said}, bits(answer)
