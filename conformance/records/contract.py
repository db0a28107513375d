"""What a provider says of itself, which kernels it has, and how it behaves as a part of a process, as workers observed
it; and the lists of cases that a certificate is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOLDS, BROKEN, REMARK, UNSEEN, NOT_ASKED = "holds", "broken", "remark", "not observed", "not applicable"
"""States of a rule. BROKEN: a certificate has no level. REMARK: what an author should know. UNSEEN: the system that the
workers ran on cannot tell. NOT_ASKED: the rule is not about such a provider."""

STATES = (BROKEN, REMARK, UNSEEN, NOT_ASKED, HOLDS)
"""In the order in which they are shown."""


@dataclass(frozen=True)
class Rule:
    """One rule of the contract. name: short, the same in every release. text: the rule in words. state: of STATES.
    found: what was observed, in words."""

    name: str
    text: str
    state: str
    found: str


@dataclass(frozen=True)
class Device:
    """A device that the provider offers (`get_ep_devices`). hardware: type, vendor and ids, in words."""

    provider: str
    vendor: str
    hardware: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Library:
    """A file that the sessions ran on. role: `library` of the provider, or `runtime`. sha256: in hexadecimal."""

    role: str
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Kernel:
    """A kernel that the provider has registered. operator: with its domain. versions: the first and the last, None
    where nobody says. dtypes: of its type constraints. state, why: whether the suite has cases of it (`epcheck coverage
    --kernels`)."""

    operator: str
    versions: tuple[int, int | None] | None
    dtypes: tuple[str, ...]
    state: str
    why: str = ""


@dataclass(frozen=True)
class Contract:
    """All that was observed of a provider. api_version: of ONNX Runtime's C API, which its library asks for first; None
    where there is none. facts: what the worker reports of the machine. kernels: those registered, as `source` says."""

    target: str
    provider: str
    facts: Mapping[str, str]
    devices: tuple[Device, ...]
    libraries: tuple[Library, ...]
    rules: tuple[Rule, ...]
    api_version: int | None = None
    source: str = ""
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Mustpass:
    """A list of cases that a certificate is about. name: `thin` or `whole`. suite, onnx: the releases whose list it is.
    cases, digest: how many, and `run.digest_of` their ids."""

    name: str
    suite: str
    onnx: str
    cases: int
    digest: str
