"""What a run ran on: which runs may be compared night by night, and what changed between two of them.

The *class* of a target stays when its driver, its runtime or the suite are updated; the *fingerprint* is all that may
change then. Both are read from the Run alone: `Run.targets` has what each worker told of itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from epcheck.conformance.records.run import Run
from epcheck.conformance.records.target_facts import INCIDENTAL, ON_CPU, base_of
from epcheck.reports.text import as_sentence, format_list

CPU, DML = "CPUExecutionProvider", "DmlExecutionProvider"

REFERENCE = "reference"
"""The target that is the ReferenceEvaluator of onnx, which numpy computes."""

WHOLE_SUITE = "the whole suite"

RELEASE_FACTS = ("plugin_library", "onnxruntime", "DirectML.dll", "onnx")
"""Facts of a target that tell its provider's release: the first that it states. A plugin has a version of its own: its
package's, or its library's. Other providers are released with ONNX Runtime; `directml` and `onnx.reference` need none.
"""

PLUGIN = "plugin"
"""The fact that names a plugin's package with its version, `onnxruntime-ep-webgpu 0.4.0`, or its library's file."""


@dataclass(frozen=True, order=True)
class FingerprintClass:
    """What two nights have in common that may be compared. provider: an execution provider, or the target's name where
    that does not tell. adapter: the GPU or NPU, or the CPU where the provider computes on it; of one that the run does
    not name, what it tells of the machine. selection: which cases, in words."""

    provider: str
    adapter: str
    selection: str

    def __str__(self) -> str:
        return f"{self.provider} on {self.adapter}, {self.selection}"


@dataclass(frozen=True)
class Changed:
    """A part of the fingerprint that is not what it was. older, newer: empty where the run does not have it."""

    part: str
    older: str
    newer: str

    def __str__(self) -> str:
        if self.older and self.newer:
            return f"{self.part}: {self.older} → {self.newer}"
        return f"{self.part}: {self.newer}, not there before" if self.newer else f"{self.part}: {self.older} is gone"


def fingerprint_class(run: Run, target: str) -> FingerprintClass:
    """The class of one of the run's targets. A run that never reached its target has an adapter of `unknown`."""
    provider, facts = provider_of(run, target), run.targets.get(target, {})
    return FingerprintClass(provider, _adapter(provider, facts), _selection(run.selection))


def provider_of(run: Run, target: str) -> str:
    """The execution provider of one of the run's targets, as far as facts or its specification tell (see
    `epcheck.conformance.targets.target`); otherwise the target's name."""
    stated = run.targets.get(target, {}).get("execution_provider")
    path, has_provider, provider = target.partition("#")
    if stated or (has_provider and provider):
        return stated or provider
    if target.startswith("python:"):
        return target
    known = {"dml": DML, "cpu": CPU}.get(base_of(target))
    return known or (CPU if "/" in path or "\\" in path else target)


def release_of(facts: Mapping[str, str]) -> str:
    """The release that a target's facts tell; empty where they tell none."""
    package, _, version = facts.get(PLUGIN, "").partition(" ")
    if package and version:
        return version
    return next((facts[name] for name in RELEASE_FACTS if facts.get(name)), "")


def release_order(release: str) -> tuple[int, Version, str]:
    """Sorts releases as versions; what is no version comes first."""
    try:
        return 1, Version(release), release
    except InvalidVersion:
        return 0, Version("0"), release


PARTS: Mapping[str, str] = {
    "driver_version": "driver",
    "driver": "driver",
    "DirectML.dll": "DirectML.dll",
    "plugin": "plugin",
    "onnxruntime": "onnxruntime",
    "os": "OS",
    "wine": "Wine",
    "vkd3d": "vkd3d",
    "vulkan_driver": "Vulkan driver",
    "graphics_stack": "graphics stack",
    "adapter": "adapter",
    "d3d_feature_level": "Direct3D feature level",
    "processor": "CPU",
    "onnxruntime_build": "onnxruntime's build",
    "epcheck": "epcheck",
    "onnx": "onnx",
    "python": "Python",
    "numpy": "NumPy",
}
"""Fact of a target -> what people call it, in the order in which they ask. Other facts follow under their own names."""

IMPLIED: Mapping[str, str] = {
    "Vulkan driver": "driver",
    "adapter": "driver",
    "Direct3D feature level": "driver",
    "onnxruntime's build": "onnxruntime",
    "providers": "onnxruntime",
    "assignment": "onnxruntime",
    "NumPy": "Python",
    "machine": "OS",
    **dict.fromkeys(("vendor_id", "device_id", "dxgi_vendor_id"), "adapter"),
}
"""A part that changes along with another, and is told only where that one has not changed. (Mesa has the release of
LLVM in the adapter's name.)"""


def fingerprint(run: Run, target: str) -> dict[str, str]:
    """Part -> value of all that the run tells of a target, the runner's epcheck and onnx among it, in reading order."""
    runner = {name: run.versions[name] for name in ("epcheck", "onnx") if name in run.versions}
    return parts_of({**runner, **run.targets.get(target, {})})


def parts_of(stated: Mapping[str, str]) -> dict[str, str]:
    """Part -> value of the facts that a target's worker states, in reading order."""
    facts = {name: value for name, value in stated.items() if name not in INCIDENTAL and value}
    stack = dict(_stack(facts.pop("graphics_stack", ""), facts.get("vulkan_driver", "")))
    merged = {**facts, **stack}
    ordered = [name for name in PARTS if name in merged] + [name for name in merged if name not in PARTS]
    return {PARTS.get(name, name): merged[name] for name in ordered}


def changes(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[Changed, ...]:
    """What differs between two fingerprints, in reading order; what merely follows from another change is left out."""
    if older == newer:  # most nights
        return ()
    every = {**older, **newer}
    order = [part for part in dict.fromkeys(PARTS.values()) if part in every]
    order += [part for part in every if part not in order]
    differing = [part for part in order if older.get(part) != newer.get(part)]
    return tuple(
        Changed(part, older.get(part, ""), newer.get(part, ""))
        for part in differing
        if IMPLIED.get(part) not in differing
    )


COMPARED: Mapping[str, tuple[str, ...]] = {
    "driver": ("driver", "Vulkan driver", "graphics stack"),
    "runtime": ("onnxruntime", "DirectML.dll", "plugin", "plugin_library", "onnx"),
    "OS": ("OS",),
}
"""What people ask of two nights -> the parts of the fingerprint that tell it."""


def unknown_parts(older: tuple[Run, str], newer: tuple[Run, str]) -> tuple[str, ...]:
    """Of COMPARED, what one of two (run, name of its target) does not tell: nobody knows whether it is the same. A
    provider that computes on a CPU has no driver."""
    missing = {name for side in (older, newer) for name in _missing(*side)}
    return tuple(name for name in COMPARED if name in missing)


def _missing(run: Run, target: str) -> Iterator[str]:
    facts, provider = run.targets.get(target, {}), provider_of(run, target)
    has_driver = bool(facts.get("adapter")) or not _is_on_cpu(provider, facts)
    parts = parts_of(facts)
    for name, told_by in COMPARED.items():
        if (name != "driver" or has_driver) and not any(parts.get(part) for part in told_by):
            yield name


def describe_changes(changed: tuple[Changed, ...], unknown: Sequence[str] = ()) -> str:
    """What changed, and what of COMPARED nobody knows, in one sentence."""
    if not changed:
        return describe_same(unknown)
    untold = describe_unknown(changed, unknown)
    return f"Changed: {'; '.join(filter(None, (*map(str, changed), untold)))}."


def describe_same(unknown: Sequence[str], asked: Sequence[str] = tuple(COMPARED)) -> str:
    """What is the same where nothing is known to have changed, in one sentence. asked: of COMPARED."""
    known = [name for name in asked if name not in unknown]
    untold = describe_unknown((), [name for name in asked if name in unknown])
    return as_sentence("; ".join(filter(None, (f"same {format_list(known)}" if known else "", untold))))


def describe_unknown(changed: tuple[Changed, ...], unknown: Sequence[str]) -> str:
    """What of COMPARED nobody knows besides what changed: `driver and OS unknown`; empty where there is nothing."""
    untold = [name for name in unknown if not any(change.part in COMPARED[name] for change in changed)]
    return f"{format_list(untold)} unknown" if untold else ""


def _is_on_cpu(provider: str, facts: Mapping[str, str]) -> bool:
    """Whether the provider computes on a CPU, by its name, its options or the device of a plugin's provider."""
    options = facts.get("provider_options", "").upper().split(", ")
    device = facts.get("device", "")
    is_cpu = provider in ON_CPU or "DEVICE_TYPE=CPU" in options or device.startswith("cpu ")
    return is_cpu or provider == REFERENCE


def _adapter(provider: str, facts: Mapping[str, str]) -> str:
    """Name and PCI ids of the GPU or NPU, without the versions that drivers put into parentheses; the CPU's name where
    the provider computes on it; otherwise that it is unknown, with the `device_id` that was asked for and the CPU."""
    if name := facts.get("adapter"):
        bare = _without_parentheses(name)
        ids = [facts.get(key, "") for key in ("vendor_id", "device_id")]
        known = all(re.fullmatch(r"0x[0-9a-fA-F]+", number) and int(number, 16) for number in ids)
        return f"{bare} [{ids[0][2:]}:{ids[1][2:]}]" if known else bare
    processor = _without_parentheses(facts.get("processor", "").partition(", ")[0])
    if not facts or _is_on_cpu(provider, facts) or "ExecutionProvider" not in provider:
        return processor or "unknown"
    if device := facts.get("device"):
        return device
    number = re.search(r"(?:^|, )device_id=(\w+)", facts.get("provider_options", ""))
    return " ".join(filter(None, ("unknown adapter", number and number[1], processor and f"beside {processor}")))


def _without_parentheses(name: str) -> str:
    return " ".join(re.sub(r"\([^()]*\)", " ", name).split()) or name


def _stack(stack: str, vulkan_driver: str) -> Iterator[tuple[str, str]]:
    """The parts of a graphics stack, `wine 10.0, vkd3d 1.14 DXIL, llvmpipe Mesa 25.0.7`, by name; the Vulkan driver is
    a fact of its own."""
    unnamed = []
    for part in stack.removesuffix(vulkan_driver).split(", "):
        name, _, version = part.strip().partition(" ")
        if name in ("wine", "vkd3d") and version:
            yield name, version
        elif part.strip():
            unnamed.append(part.strip())
    if unnamed:
        yield "graphics_stack", ", ".join(unnamed)


def _selection(selection: Mapping[str, object]) -> str:
    """Which cases a run selects, in words that are the same for the same cases."""
    words = [
        f"{name} {_listed(selection[name])}" for name in ("operators", "dtypes", "patterns") if selection.get(name)
    ]
    if limit := selection.get("limit"):
        words.append(f"at most {limit}")
    if (source := selection.get("source", "suite")) != "suite":
        words.append(f"source {_listed(source)}")
    if selection.get("thin"):
        words.append("thin")
    if variants := selection.get("variants"):
        words.append(f"variants {_listed(variants)}")
    if compilers := selection.get("context_from"):
        words.append(f"contexts from {_listed(compilers)}")
    if uses := selection.get("uses"):
        words.append(f"uses of {uses}")
    if shard := selection.get("shard"):
        words.append(f"shard {shard}")
    return ", ".join(words) or WHOLE_SUITE


def _listed(value: object) -> str:
    return "+".join(sorted(map(str, value))) if isinstance(value, list | tuple) else str(value)
