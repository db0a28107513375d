"""Variants: other ways of running the same case on the same target, in which its result must be the same.

The ordinary way is: no graph optimisation, feeds from the host's memory, the ONNX model itself, the target's own
options, and other cases in the session where that is faster. Each axis changes one of these:

level       the graph optimisation levels `basic`, `extended` and `all` (GraphOptimizationLevel of ONNX Runtime)
io_binding  inputs and outputs bound as OrtValues in the memory of the provider's device (IOBinding of ONNX Runtime)
context     the model compiled to an EPContext model, which is loaded again, as a `file` and as `bytes`
            (https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html); from a folder to which it was
            `moved`, and from one that is `read_only`; a `stale` and a `damaged` one, which must be refused; and one
            `from:TARGET`, which that target compiled
precision   the options that the target declares under `precisions` in epcheck.toml
packing     `alone` in its session, and `packed` with a copy of itself
weights     initializers in a `file` beside the model, and in such a file in `memory`
            (add_external_initializers_from_files_in_memory of ONNX Runtime), both gone before the session runs; beside
            sessions with `other` weights; `shared` by sessions (SessionOptions.add_initializer)
options     session options that applications set: `arena` (memory arena and pattern), `parallel` (ORT_PARALLEL),
            `threads` (4 within an operator), `prepacking` (session.disable_prepacking), `deterministic`

Axes of use run sessions as applications do (`workers/program/backends/uses.py`):

threads     `2` and `4` sessions at once in their threads, one session that is `shared`, one whose `first` runs are at
            once, and one beside the `creation` of others
reruns      the same session with other `feeds` and `shapes`, then with the first again; many `sizes`; sessions of other
            `types`; outputs that are `bound`, or `in_place` of an input
lifecycle   sessions created and released: `repeated`, after `failed` ones and failed runs, in another `order`, with the
            library `registered` again, at the `exit` of the process
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from epcheck.conformance.records import terms
from epcheck.conformance.targets.target import CPU, DML, Target, TargetError
from epcheck.generators.error import EpcheckError


class VariantError(EpcheckError, ValueError):
    """The text names no axis; the message says which there are."""


class Axis(StrEnum):
    """What is varied."""

    LEVEL = "level"
    IO_BINDING = "io_binding"
    CONTEXT = "context"
    PRECISION = "precision"
    PACKING = "packing"
    WEIGHTS = "weights"
    OPTIONS = "options"
    THREADS = "threads"
    RERUNS = "reruns"
    LIFECYCLE = "lifecycle"

    @classmethod
    def _missing_(cls, value: object) -> Axis | None:
        """Runs, repro folders and scripts of an earlier epcheck say `binding`."""
        return cls.IO_BINDING if value == "binding" else None


STALE, DAMAGED = "stale", "damaged"

FROM = f"{Axis.CONTEXT}=from:"
"""What the name of a variant begins with that loads what another target compiled; that one's name follows."""

USES = tuple(map(Axis, terms.USES))
"""The axes on which a session is used as applications use it: what differs there is usage-dependent."""


class UsedCases(StrEnum):
    """Of which cases sessions are used as applications do. SAMPLE: those of `choose_sample`."""

    NONE = "none"
    SAMPLE = "sample"
    ALL = "all"


DYNAMIC = tuple(f"{Axis.RERUNS}={how}" for how in ("shapes", "sizes"))
"""The uses that need a model with dynamic sizes."""

SHARED = f"{Axis.WEIGHTS}=shared"
"""The use whose sessions share the values of initializers."""

MOVED = tuple(f"{Axis.WEIGHTS}={where}" for where in ("file", "memory"))
"""The variants whose weights are in a file."""

EXIT = f"{Axis.LIFECYCLE}=exit"
"""The use that starts a process: it runs of the sample alone."""

FORBIDDEN: Mapping[tuple[str, str], str] = {
    (DML, f"{Axis.THREADS}=shared"): (
        "https://onnxruntime.ai/docs/execution-providers/DirectML-ExecutionProvider.html#configuration-options"
    ),
}
"""(Provider, variant) -> where its documentation forbids it: an error is no fault then, but the end of the process and
a wrong value are."""

SESSIONS: Mapping[Axis, Mapping[str, Mapping[str, Any]]] = {
    Axis.LEVEL: {level: {"level": level} for level in ("basic", "extended", "all")},
    Axis.IO_BINDING: {"device": {"way": "bound"}},
    Axis.CONTEXT: {
        how: {"way": "context", "context": how} for how in ("file", "bytes", "moved", "read_only", STALE, DAMAGED)
    },
    Axis.WEIGHTS: {
        **{where: {"way": "weights", "weights": where} for where in ("file", "memory")},
        **{how: {"way": "use", "use": f"{Axis.WEIGHTS}={how}"} for how in ("other", "shared")},
    },
    Axis.OPTIONS: {
        "arena": {"arena": True},
        "parallel": {"parallel": True, "threads": 2},
        "threads": {"threads": 4},
        "prepacking": {},
        "deterministic": {"deterministic": True},
    },
    **{
        axis: {how: {"way": "use", "use": f"{axis}={how}"} for how in ways}
        for axis, ways in {
            Axis.THREADS: ("2", "4", "shared", "first", "creation"),
            # Types come first: before the process has seen the model's own type with these shapes.
            Axis.RERUNS: ("types", "feeds", "shapes", "sizes", "bound", "in_place"),
            Axis.LIFECYCLE: ("repeated", "failed", "order", "registered", "exit"),
        }.items()
    },
}
"""Axis -> value -> what a request for such a session says besides (`workers/program/protocol.py`)."""

OF_CALLABLES = (Axis.THREADS, Axis.RERUNS, Axis.LIFECYCLE)
"""The axes of a callable, of which each call of the same model stands for a session."""

CONFIG: Mapping[str, Mapping[str, str]] = {f"{Axis.OPTIONS}=prepacking": {"session.disable_prepacking": "1"}}
"""Variant -> session options besides those of the target."""

NO_CONTEXT = (CPU, DML)
"""Providers that compile nothing and so have nothing to put into an EPContext model."""


@dataclass(frozen=True)
class Variants:
    """The variants of a candidate. targets: the candidate in each of its other ways of running. skipped: axis -> why
    it has none of that axis, in words."""

    targets: tuple[Target, ...]
    skipped: Mapping[str, str]

    def leave_out(self, axes: Collection[str]) -> Variants:
        """Those of the other axes. axes: names of axes, or of variants."""
        return Variants(
            tuple(
                target
                for target in self.targets
                if target.variant.partition("=")[0] not in axes and target.variant not in axes
            ),
            {axis: why for axis, why in self.skipped.items() if axis not in axes},
        )


def is_use(variant: str) -> bool:
    """Whether a variant, or an axis, is a use of sessions as an application has it."""
    return variant.partition("=")[0] in USES


def parse_axes(texts: Sequence[str] | str) -> tuple[Axis, ...]:
    """The axes in `level,binding`, or in several such texts, each once. Raises VariantError."""
    words = ",".join([texts] if isinstance(texts, str) else texts).split(",")
    return tuple(dict.fromkeys(_parse_axis(word.strip()) for word in words))


def _parse_axis(word: str) -> Axis:
    try:
        return Axis(word)
    except ValueError:
        axes = ", ".join(Axis)
        raise VariantError(f"--variants: unknown axis '{word}'; write some of {axes}, with commas") from None


def variants_of(
    candidates: Iterable[Target], axes: Sequence[Axis], compilers: Sequence[Target] = ()
) -> dict[str, Variants]:
    """Candidate name -> its variants on these axes; nothing without axes. compilers: targets whose EPContext models are
    loaded as well, on the axis `context`. Raises TargetError where no candidate has one on any of them: such a run
    would prove nothing about them; and for a compiler that makes no such models."""
    if compilers and Axis.CONTEXT not in axes:
        raise TargetError("--context-from needs the axis of contexts; add --variants context")
    for compiler in compilers:
        if why := why_none(compiler, Axis.CONTEXT):
            raise TargetError(f"--context-from {compiler.name}: {why}")
    if not axes:
        return {}
    found = {target.name: _of(target, axes, compilers) for target in candidates}
    if not any(variants.targets for variants in found.values()):
        reasons = dict.fromkeys(why for variants in found.values() for why in variants.skipped.values())
        raise TargetError(f"--variants {','.join(axes)}: {'; '.join(reasons)}; name another axis, or leave it out")
    return found


def _of(target: Target, axes: Iterable[Axis], compilers: Sequence[Target]) -> Variants:
    skipped = {str(axis): why for axis in axes if (why := why_none(target, axis))}
    own = [made for axis in axes if axis not in skipped for made in _along(target, axis)]
    is_compiled = Axis.CONTEXT in axes and Axis.CONTEXT not in skipped
    return Variants((*own, *(load_context(target, each) for each in compilers if is_compiled)), skipped)


def load_context(target: Target, compiler: Target) -> Target:
    """The variant of a target that loads what another one, or itself, compiled."""
    varied = _name_variant(target, Axis.CONTEXT, f"{FROM.partition('=')[2]}{compiler.name}")
    return replace(varied, request_defaults={"way": "context", "context": "from"}, compiler=compiler)


def compile_for(variant: Target) -> Target:
    """The target that compiles what such a variant loads, as it does that: in its own workers."""
    compiler = variant.compiler
    assert compiler is not None
    return replace(
        compiler,
        name=f"{compiler.name} {variant.variant}",
        base=compiler.name,
        variant=variant.variant,
        request_defaults={"way": "context", "context": "compile"},
        compiles_for=variant.base,
        expectations=(),
    )


def variant_of(target: Target, text: str, compiler: Target | None = None) -> Target:
    """The target in one of its other ways of running, as `level=all`. compiler: the target that such a variant names.
    Raises TargetError where it has no such way."""
    word, _, value = text.partition("=")
    try:
        axis = Axis(word)
    except ValueError:
        axes = ", ".join(Axis)
        raise TargetError(f"unknown variant '{text}'; write AXIS=VALUE with an axis of {axes}") from None
    if why := why_none(target, axis):
        raise TargetError(f"unknown variant '{text}': {why}")
    if compiler is not None:
        if why := why_none(compiler, Axis.CONTEXT):
            raise TargetError(f"unknown variant '{text}': {why}")
        return load_context(target, compiler)
    variants = {variant.variant: variant for variant in _along(target, axis)}
    if (name := f"{axis}={value}") not in variants:
        raise TargetError(f"target '{target.name}' has no variant '{text}'; it has {', '.join(variants)}")
    return variants[name]


def why_none(target: Target, axis: Axis) -> str:
    """Why a target has no variants on an axis; empty where it has some."""
    if not target.makes_sessions and not (target.is_callable and axis in OF_CALLABLES):
        return f"target '{target.name}' does not run sessions of ONNX Runtime"
    if axis is Axis.CONTEXT and target.provider in NO_CONTEXT:
        return f"{target.provider} makes no EPContext models"
    if axis is Axis.PRECISION and not target.precisions:
        return f"target '{target.name}' declares no precisions in epcheck.toml"
    return ""


def _along(target: Target, axis: Axis) -> Iterator[Target]:
    """The target in each way of one axis."""
    if axis is Axis.PRECISION:
        for name, options in target.precisions.items():
            yield replace(_name_variant(target, axis, name), options={**target.options, **options})
    elif axis is Axis.PACKING:
        yield _name_variant(target, axis, "alone")
        yield replace(_name_variant(target, axis, "packed"), packed=True)
    else:
        for name, session in SESSIONS[axis].items():
            varied = _name_variant(target, axis, name)
            config = {**target.config, **CONFIG.get(varied.variant, {})}
            yield replace(varied, request_defaults=session, config=config)


def _name_variant(target: Target, axis: Axis, value: str) -> Target:
    variant = f"{axis}={value}"
    return replace(target, name=f"{target.name} {variant}", base=target.name, variant=variant, expectations=())
