"""Which kernels of a provider have cases: its own registry against the suite, whatever the suite's operators are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from epcheck.conformance.judging.coverage import dtypes_of_cases, has_case
from epcheck.conformance.judging.kernel_registry import KernelRegistry, RegisteredKernel
from epcheck.generators import exclusions, registry, schema
from epcheck.generators.claims import why_unreachable
from epcheck.generators.node import qualified_name
from epcheck.generators.schema import NUMPY_NAMES

COVERED, PARTIAL, EXCLUDED, UNKNOWN, MISSING = "covered", "partial", "excluded", "unknown", "missing"
"""What is said of a kernel: it has cases in every dtype that one can reach; in some; none, for a stated reason; its
library does not tell whether there is one, and there is no case; it has no case, and no reason."""

STATES = (COVERED, PARTIAL, EXCLUDED, UNKNOWN, MISSING)


@dataclass(frozen=True)
class KernelCoverage:
    """A kernel and its cases. versions: as in `RegisteredKernel`. dtypes: of all its type constraints; empty where
    nobody says. without_case: those of them that a case could have and none has. why: of an excluded one; source: where
    one can read that."""

    domain: str
    operator: str
    versions: tuple[int, int | None] | None
    dtypes: tuple[str, ...]
    state: str
    without_case: tuple[str, ...] = ()
    why: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """`Slice`, `com.microsoft::QMoE`."""
        return qualified_name(self.operator, self.domain)


def cover_kernels(found: KernelRegistry) -> Iterator[KernelCoverage]:
    """Every kernel, one for each range of versions, by name; then the operators of which the library does not tell."""
    merged: dict[tuple[str, str, tuple[int, int | None] | None], set[str]] = {}
    for kernel in found.kernels:
        key = (kernel.domain, kernel.operator, kernel.versions)
        merged.setdefault(key, set()).update(_name_dtypes(kernel))
    for (domain, operator, versions), dtypes in sorted(merged.items(), key=lambda item: (item[0][:2], str(item[0][2]))):
        yield _cover(domain, operator, versions, dtypes)
    known = registry.all_operators()
    for domain, operator in sorted(found.unknown):
        name = qualified_name(operator, domain)
        if name not in known and exclusions.why_excluded(name) is None:
            yield KernelCoverage(domain, operator, None, (), UNKNOWN)


def _name_dtypes(kernel: RegisteredKernel) -> Iterator[str]:
    """numpy's names of the element types of its tensors, also of those in sequences; ONNX's where numpy has none."""
    for spelled in (name for names in kernel.types.values() for name in names):
        element = re.sub(r"^(\w+\()+|\)+$", "", spelled)
        yield NUMPY_NAMES.get(element, element)


def _cover(domain: str, operator: str, versions: tuple[int, int | None] | None, dtypes: set[str]) -> KernelCoverage:
    name, listed = qualified_name(operator, domain), tuple(sorted(dtypes))
    declared = registry.all_operators().get(name)
    if declared is None:
        reason = exclusions.why_excluded(name)
        state = MISSING if reason is None else EXCLUDED
        return KernelCoverage(domain, operator, versions, listed, state, (), *(reason or ()))
    first, last = versions or (1, None)
    in_range = [v for v in schema.since_versions(operator, domain) if first <= v and (last is None or v <= last)]
    reached: set[str] = set()
    for version in in_range:
        reached |= dtypes_of_cases(declared, (domain, operator, version), dtypes)
    reachable = {d for d in dtypes if any(not why_unreachable((domain, operator, v), d) for v in in_range)}
    left = tuple(sorted(reachable - reached)) if reached else ()  # of the type of an output alone nothing is bound
    if not in_range:
        why = f"no opset that ONNX Runtime reads has a version of {operator} in this range"
        return KernelCoverage(domain, operator, versions, listed, EXCLUDED, (), why)
    if not any(has_case(declared, version) for version in in_range):
        return KernelCoverage(domain, operator, versions, listed, MISSING)
    return KernelCoverage(domain, operator, versions, listed, PARTIAL if left else COVERED, left)


def list_uncovered_schemas(found: KernelRegistry) -> tuple[str, ...]:
    """Operators that the runtime has a schema of, the suite no case, and the provider no kernel, by name."""
    own: Mapping[tuple[str, str], object] = dict.fromkeys((kernel.domain, kernel.operator) for kernel in found.kernels)
    known = registry.all_operators()
    rest: Iterable[tuple[str, str]] = found.schemas - own.keys() - found.unknown
    return tuple(sorted(name for domain, operator in rest if (name := qualified_name(operator, domain)) not in known))
