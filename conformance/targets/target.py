"""A target: a provider in a runtime, ready to be started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from epcheck.conformance.comparison.precision import Precision
from epcheck.conformance.records.case_condition import holds
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.facts import describe_case
from epcheck.conformance.records.target_facts import ON_CPU
from epcheck.conformance.targets import condition, expectation
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.windows_path import windows_path
from epcheck.generators.case_pattern import any_matches, matches
from epcheck.generators.claims import Claims, claims_of
from epcheck.generators.error import EpcheckError

CPU, DML = "CPUExecutionProvider", "DmlExecutionProvider"

PACKS_AGREE = (CPU, DML)
"""Providers of which it is known that a node among others is placed and computed as it is alone: every release's tests
show it (tests/conformance/preparation/test_pack.py, test_parity.py)."""


WORKER = Path(__file__).parents[1] / "workers" / "program" / "worker.py"


DISABLE_FALLBACK, RECORD = "session.disable_cpu_ep_fallback", "session.record_ep_graph_assignment_info"


STRICT = {DISABLE_FALLBACK: "1", RECORD: "1"}
"""Session options of every provider but CPU: no node may fall back to CPU unseen, and assignments are recorded."""


RECORDED = {RECORD: "1"}


MEBIBYTE = 1 << 20


MEASURED = -1
"""In place of a number of workers: as many as pay on the adapter, which is measured; until then 1."""


IEEE = (CPU, "CUDAExecutionProvider")
"""Providers whose single operations keep to IEEE 754."""

NO_CLAIMS = Claims("", {})
"""In place of a claim table: none is used, the one that epcheck ships neither."""


class TargetError(EpcheckError, ValueError):
    """A target is unavailable; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Target:
    """A provider in a runtime, ready to be started.

    command: the interpreter and what stands before the worker program. environment: the whole environment of the
    worker, None for this process's. arguments: the worker program's own. worker: its entry file as that interpreter
    names it; the rest of the program stands in the same folder.
    provider: the execution provider whose work has to be proved; None for a callable. device: where its output
    buffers can be bound ('dml', 'cpu'), None where they cannot. deadline_s: seconds for one case; startup_s: seconds
    until the worker answers. memory_bytes: resident memory of a worker. window: cases sent ahead.
    pack: cases that may share a session at most; 1 keeps each in its own. jobs: workers at most; 0 for as many as
    there are cores, MEASURED for as many as pay.
    owns_group: whatever is in the worker's process group ends with the worker, which Wine's daemons must not.
    forks: workers may be forks of one process that has imported everything, where the system can fork.
    calls_directml: the worker takes a case's DirectML operator (`program`) in the place of its model.
    in_lab: it runs under Wine, where files have other names.
    unavailable_reason: says what keeps its worker from starting, and what mends it; empty for nothing.
    is_plugin: its provider is not the runtime's own, but that of a library which the arguments name.
    set_variables: what of the environment was set for it. extra_facts: facts that its worker cannot tell.
    float32_precision: what float32 is computed in, where that is less.
    claim_table: what the provider claims, in place of the table that epcheck ships of it; NO_CLAIMS for nothing.
    precisions: name -> the options with which the provider computes in that precision.
    base, variant: of a target that is a variant of another, that one's name, and the variant's own, `level=all`.
    request_defaults: what its requests say besides. packed: a case shares its session with a copy of itself.
    compiler: of a variant that loads what another target compiled, that target; compiled: the EPContext model of the
    case, as soon as it is there. compiles_for: of a target that compiles for such a variant, the name of its base.
    jail: whether the system keeps its workers from writing outside their folders and from the network, where it can;
    None for all but callables. writable: folders that they may write to besides.
    """

    name: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    worker: str = str(WORKER)
    environment: Mapping[str, str] | None = None
    provider: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    deadline_s: float = 20.0
    startup_s: float = 60.0
    memory_bytes: int = 4096 * MEBIBYTE
    window: int = 128
    pack: int = 1
    jobs: int = 1
    owns_group: bool = True
    forks: bool = False
    calls_directml: bool = False
    in_lab: bool = False
    unavailable_reason: Callable[[], str] | None = field(default=None, compare=False)
    is_plugin: bool = False
    set_variables: Mapping[str, str] = field(default_factory=dict)
    extra_facts: Mapping[str, str] = field(default_factory=dict)
    precisions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    base: str = ""
    variant: str = ""
    request_defaults: Mapping[str, Any] = field(default_factory=dict)
    packed: bool = False
    compiler: Target | None = None
    compiled: bytes = b""
    compiles_for: str = ""
    jail: bool | None = None
    writable: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    claim_table: Claims | None = None
    float32_precision: Precision | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether its provider computes on a CPU."""
        return self.provider in ON_CPU or self.options.get("device_type", "").upper().startswith("CPU")

    @property
    def is_ieee(self) -> bool:
        """Whether its provider computes sums, products, quotients, square roots and casts as IEEE 754 defines them:
        CUDA C++ Programming Guide, "Floating-Point Standard"; C11, annex F."""
        return self.provider in IEEE

    @property
    def makes_sessions(self) -> bool:
        """Whether it runs models in sessions of ONNX Runtime, as the script of a repro folder does."""
        return self.arguments[:1] == ("onnxruntime",)

    @property
    def is_callable(self) -> bool:
        """Whether its worker calls a Python function."""
        return any(word.startswith("python:") for word in self.arguments[:1])

    @property
    def is_jailed(self) -> bool:
        """Whether its workers are bound by the system, where it can."""
        return not self.is_callable if self.jail is None else self.jail

    @property
    def claims(self) -> Claims | None:
        """What its provider claims; None where it promises nothing."""
        if self.claim_table is None:
            return claims_of(self.provider) if self.provider else None
        return None if self.claim_table is NO_CLAIMS else self.claim_table

    @property
    def plain_name(self) -> str:
        """Its name as a part of the name of a file or a folder."""
        plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in self.name)
        return plain.strip("-.") or "target"

    def narrow(self, facts: Mapping[str, str]) -> Self:
        """The target with those of its expectations, and those claims, that hold where its worker reports these
        facts."""
        found = expectation.applicable(self.expectations, facts)
        target = self if found is self.expectations else replace(self, expectations=found)
        claims = self.claims
        if claims is None:
            return target
        holds = partial(condition.table_holds, facts=facts)
        narrowed = claims.narrow(holds) if holds(claims.when) else NO_CLAIMS
        return target if narrowed is claims else replace(target, claim_table=narrowed)

    def stated_facts(self) -> dict[str, str]:
        """What belongs to its fingerprint and its worker cannot tell: what was set for its provider and its sessions.
        What proves placement is not among it: it is the same for all."""
        config = {key: value for key, value in self.config.items() if key not in STRICT}
        lowered = {"float32_precision": str(self.float32_precision)} if self.float32_precision else {}
        stated = {"provider_options": self.options, "session_config": config, "environment": self.set_variables}
        return {
            **self.extra_facts,
            **lowered,
            **{name: _listed(entries) for name, entries in stated.items() if entries},
        }

    def name_of(self, file: Path) -> str:
        """A file of this machine as the target's interpreter names it."""
        return windows_path(file) if self.in_lab else str(file.absolute())

    @cached_property
    def _by_head(self) -> dict[str, tuple[tuple[str, ...], tuple[Expectation, ...]]]:
        """`expectation.head` -> the expectations of that operator and their globs, filled as cases come."""
        return {}

    def find_expectations(self, case: CaseFacts) -> tuple[Expectation, ...]:
        """The expectations whose glob matches the case and whose condition holds for it, in their order."""
        found = self.match_globs(case.case_id)
        if not any(e.where for e in found):
            return found
        facts = describe_case(case)
        return tuple(e for e in found if holds(e.where, facts))

    def match_globs(self, case_id: str) -> tuple[Expectation, ...]:
        """The expectations whose glob matches the id, in their order."""
        start = expectation.head(case_id)
        if start not in self._by_head:
            possible = tuple(e for e in self.expectations if expectation.may_match(e, start))
            self._by_head[start] = tuple(e.case for e in possible), possible
        globs, possible = self._by_head[start]
        if not possible or not any_matches(globs, case_id):
            return ()
        return tuple(e for e in possible if matches(case_id, e.case))


def _listed(entries: Mapping[str, str]) -> str:
    """`device_id=0, tunable=1`, in the order of the names."""
    return ", ".join(f"{name}={entries[name]}" for name in sorted(entries))
