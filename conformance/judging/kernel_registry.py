"""The kernels that the provider of a target has, whatever the suite has cases of: read from the runtime's registry, or,
of a provider whose registry Python cannot see, from the words in its library."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from epcheck.conformance import lab
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.request import request, wait_until_ready

ASKED = "registry"
"""The `id` of every request: there is one at a time."""

MOST_INLINED = 15
"""Characters that a std::string holds itself, with most compilers."""

NO_END = 2**31 - 1
"""The last version of a kernel that takes all later ones, too."""


@dataclass(frozen=True)
class RegisteredKernel:
    """versions: the first and the last of the operator, None for no last one; None where nobody says. types: type
    constraint -> type strings, as `tensor(float)`; empty where nobody says."""

    domain: str
    operator: str
    versions: tuple[int, int | None] | None = None
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelRegistry:
    """What a build of ONNX Runtime has. source: where the kernels were read. schemas: (domain, operator) of each that
    it knows. kernels: of the provider. unknown: operators of which the library does not tell whether it has one."""

    source: str
    facts: Mapping[str, str]
    schemas: frozenset[tuple[str, str]]
    kernels: tuple[RegisteredKernel, ...]
    unknown: frozenset[tuple[str, str]] = frozenset()


class _Answer(msgspec.Struct):
    """The header of a worker's answer."""

    stage: str
    message: str = ""
    schemas: list[tuple[str, str]] = []
    kernels: list[tuple[str, str, int, int, dict[str, list[str]]]] = []
    library: str = ""
    words: list[str] = []
    beginnings: list[str] = []


def read_kernel_registry(target: Target) -> KernelRegistry:
    """The kernels of a target's provider, asked of a worker of it.

    Raises TargetDown when no worker starts, and TargetError where neither registry nor library tells anything.
    """
    if target.provider is None or not target.makes_sessions:
        raise TargetError(f"target '{target.name}' has no execution provider; name one that has")
    with (
        contextlib.nullcontext() if target.owns_group else lab.in_use(),
        contextlib.closing(IdleWorkers()) as idle_workers,
    ):
        client = WorkerClient(target, queue.SimpleQueue(), idle_workers)
        try:
            registered = _ask(client, target.provider, True)
            if registered and registered.kernels:
                return _read_registry(registered, client.facts)
            stored = _ask(client, target.provider, False)
            if stored and stored.library:
                return _search_library(stored, client.facts)
        finally:
            client.retire()
    raise TargetError(
        f"target '{target.name}': its runtime does not list the kernels of {target.provider}, which has no library of "
        f"its own either"
    )


def _ask(client: WorkerClient, provider: str, kernels: bool) -> _Answer | None:
    """The answer of a worker; None where it ended or failed, as one does whose provider finds no device.

    Raises TargetDown.
    """
    wait_until_ready(client)
    header = {"op": "registry", "id": ASKED, "provider": provider, "kernels": kernels}
    answer = request(client, ASKED, protocol.frame(header, [], []))
    if isinstance(answer, WorkerLost):
        return None
    try:
        found = msgspec.convert(answer.header, _Answer)
    except msgspec.ValidationError:
        return None
    return found if found.stage == "done" else None


def _read_registry(answer: _Answer, facts: Mapping[str, str]) -> KernelRegistry:
    kernels = (
        RegisteredKernel(
            domain, operator, (first, None if last >= NO_END else last), {name: tuple(t) for name, t in types.items()}
        )
        for domain, operator, first, last, types in answer.kernels
    )
    return KernelRegistry("its kernel registry", facts, frozenset(answer.schemas), tuple(kernels))


def _search_library(answer: _Answer, facts: Mapping[str, str]) -> KernelRegistry:
    """The operators whose names are words of the library.

    Not known are those whose name may stand in an instruction, or is the end of a longer word, with which a linker
    merges it; and those of com.microsoft that have the name of an operator of ai.onnx.
    """
    words, beginnings = frozenset(answer.words), frozenset(answer.beginnings)
    tails = {word[start:] for word in words for start in range(1, len(word))}
    kernels, unknown = [], set()
    for domain, operator in sorted(answer.schemas):
        if operator in words and (not domain or ("", operator) not in answer.schemas):
            kernels.append(RegisteredKernel(domain, operator))
        elif operator in words or operator in tails or _may_be_inlined(operator, beginnings):
            unknown.add((domain, operator))
    source = f"the words in {answer.library}"
    return KernelRegistry(source, facts, frozenset(answer.schemas), tuple(kernels), frozenset(unknown))


def _may_be_inlined(operator: str, beginnings: frozenset[str]) -> bool:
    """Whether a compiler may have written the name in instructions. beginnings: of 8 characters, of what is written so;
    without any, the library is for another processor than x86-64."""
    return len(operator) <= MOST_INLINED and (len(operator) < 8 or not beginnings or operator[:8] in beginnings)
