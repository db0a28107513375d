"""Conditions: on which machines an expectation applies, by the facts that a target's worker reports of itself.

    when = { vendor = "0x10de", driver = ">=580,<600" }     # every fact that is named has to match
    when = { adapter = ["*llvmpipe*", "*SwiftShader*"] }    # one pattern of a list has to match
    when = { processor = "!*vnni*" }                        # a text that the pattern behind the `!` does not match

A fact that the worker does not report matches nothing: the target `cpu` has no adapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from epcheck.conformance.records.target_facts import values_of
from epcheck.generators.case_pattern import matches
from epcheck.generators.error import EpcheckError


class ConditionError(EpcheckError, ValueError):
    """A condition is not valid, or a run does not report what it needs; the message says what to write."""


class Kind(NamedTuple):
    """How a fact is compared with a pattern.

    is_valid: whether a text is such a pattern. holds: whether a pattern matches a value. pattern_of: a pattern that
    matches a value; empty where the value cannot be read.
    """

    words: str
    is_valid: Callable[[str], bool]
    holds: Callable[[str, str], bool]
    pattern_of: Callable[[str], str]


_PCI_ID = re.compile(r"0x[0-9a-fA-F]{1,8}")

_RELEASE = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+)(?!\d)")
"""A version inside a text: `25.0.7` in `Mesa 25.0.7-2+deb13u1 (LLVM 19.1.7)`."""


def version_of(text: str) -> Version | None:
    """The version that a text is, or the first that it holds; None for none. Versions of Windows drivers have four
    numbers, `31.0.101.4502`, which is a version of Python's, too."""
    found = _release(text)
    return Version(found) if found else None


def _release(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion:
        found = _RELEASE.search(text)
        return found[1] if found else ""
    return text.strip()


def _range(pattern: str) -> SpecifierSet | None:
    """`>=580,<600`, `580.*` or `580.159.03`; releases before a final one count. None for anything else."""
    text = pattern.strip()
    try:
        return SpecifierSet(f"=={text}" if text[:1].isdigit() else text, prereleases=True) if text else None
    except InvalidSpecifier:
        return None


def _is_in_range(pattern: str, value: str) -> bool:
    versions, version = _range(pattern), version_of(value)
    return versions is not None and version is not None and versions.contains(version)


def _is_same_id(pattern: str, value: str) -> bool:
    return bool(_PCI_ID.fullmatch(value)) and int(pattern, 16) == int(value, 16)


def _without_parentheses(value: str) -> str:
    """What drivers put into parentheses is often a version, as Mesa's of LLVM is in the adapter's name."""
    return re.sub(r"\s*\([^()]*\)", "*", value)


def _matches_text(pattern: str, value: str) -> bool:
    """A `!` in front: a value, and not one that the rest matches."""
    return not matches(value, pattern[1:]) if pattern.startswith("!") else matches(value, pattern)


TEXT = Kind(
    "a glob over the whole text, or a part of it",
    lambda pattern: bool(pattern.removeprefix("!").strip()),
    _matches_text,
    _without_parentheses,
)

PCI_ID = Kind(
    "a PCI id in hexadecimal",
    lambda pattern: bool(_PCI_ID.fullmatch(pattern)),
    _is_same_id,
    lambda value: value if _PCI_ID.fullmatch(value) else "",
)

RANGE = Kind(
    "a version, or a range of versions",
    lambda pattern: _range(pattern) is not None,
    _is_in_range,
    _release,
)


class Named(NamedTuple):
    """What a condition may name. fact: how a worker reports it. example: a pattern."""

    fact: str
    kind: Kind
    example: str


NAMES: Mapping[str, Named] = {
    "adapter": Named("adapter", TEXT, "*llvmpipe*"),
    "vendor": Named("vendor_id", PCI_ID, "0x10de"),
    "driver": Named("driver_version", RANGE, ">=580,<600"),
    "graphics_stack": Named("graphics_stack", TEXT, "*vkd3d 1.14*"),
    "runtime": Named("onnxruntime", RANGE, "1.20.*"),
    "plugin": Named("plugin", RANGE, ">=0.4,<0.5"),
    "directml": Named("DirectML.dll", RANGE, ">=1.15"),
    "processor": Named("processor", TEXT, "*avx512_vnni*"),
    "os": Named("os", TEXT, "Windows-*"),
}
"""The vocabulary of `when`."""


@dataclass(frozen=True)
class Condition:
    """patterns: (name, patterns of which one has to match) of every fact that is looked at; without any it holds."""

    patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns)

    @property
    def names(self) -> frozenset[str]:
        """What it names, of NAMES."""
        return frozenset(name for name, _ in self.patterns)

    def __str__(self) -> str:
        """`vendor is 0x10de and driver is >=580,<600`."""
        return " and ".join(
            f"{name.replace('_', ' ')} is {' or '.join(_describe_pattern(name, each) for each in patterns)}"
            for name, patterns in self.patterns
        )

    def holds(self, facts: Mapping[str, str]) -> bool:
        """Whether it holds on a machine; of facts that were joined from several machines, on each of them."""
        return all(
            _matches(NAMES[name].kind, patterns, facts.get(NAMES[name].fact, "")) for name, patterns in self.patterns
        )

    def as_toml(self) -> str:
        """An inline table, as `parse` takes it."""
        texts = (f"{name} = {_toml(patterns)}" for name, patterns in self.patterns)
        return f"{{ {', '.join(texts)} }}"


ANYWHERE = Condition()
"""Holds on every machine."""


def parse(table: object) -> Condition:
    """The condition of a TOML table, name -> pattern or list of patterns. Raises ConditionError."""
    example = 'when = { vendor = "0x10de", driver = ">=580,<600" }'
    if not isinstance(table, dict):
        raise ConditionError(f"'when' is not a table; write for example {example}")
    if not table:
        raise ConditionError(f"'when' is empty; write for example {example}, or leave it out")
    return Condition(tuple((name, _patterns(name, value)) for name, value in table.items()))


def table_holds(table: Mapping[str, object], facts: Mapping[str, str]) -> bool:
    """Whether the condition of a TOML or JSON table holds where a worker reports these facts; an empty one always does.
    Raises ConditionError."""
    return not table or parse(dict(table)).holds(facts)


def of_facts(names: Iterable[str], facts: Mapping[str, str]) -> Condition:
    """The condition that holds where the facts of these names are the same, but for what stands in parentheses.

    facts: what a worker reported, or several in one mapping (`target_facts.join_facts`). Raises ConditionError when
    one of them is not among the facts, or cannot be read.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        fact, kind, _ = _find_named(name)
        values = values_of(facts.get(fact, ""))
        patterns = tuple(dict.fromkeys(map(kind.pattern_of, values)))
        if not values:
            raise ConditionError(f"the run reports no {fact} of its target; leave out --when {name}")
        if not all(map(kind.is_valid, patterns)):
            raise ConditionError(f"the run reports '{facts[fact]}' as {fact}, which is not {kind.words}; write 'when' "
                                 f"into the file by hand, and leave out --when {name}")  # fmt: skip
        found[name] = patterns
    return Condition(tuple(found.items()))


def _find_named(name: str) -> Named:
    if name not in NAMES:
        raise ConditionError(f"'when' cannot name '{name}'; it may name {', '.join(NAMES)}")
    return NAMES[name]


def _patterns(name: str, value: object) -> tuple[str, ...]:
    _, kind, example = _find_named(name)
    listed: list[object] = value if isinstance(value, list) else [value]
    patterns = tuple(pattern for pattern in listed if isinstance(pattern, str))
    if not patterns or len(patterns) < len(listed):
        raise ConditionError(
            f"'{name}' of 'when' is neither text nor a list of texts; write for example {name} = {json.dumps(example)}"
        )
    for pattern in patterns:
        if not kind.is_valid(pattern):
            raise ConditionError(
                f"'{name}' of 'when' is '{pattern}', which is not {kind.words}; write for example "
                f"{name} = {json.dumps(example)}"
            )
    return patterns


def _describe_pattern(name: str, pattern: str) -> str:
    return f"not {pattern[1:]}" if NAMES[name].kind is TEXT and pattern.startswith("!") else pattern


def _matches(kind: Kind, patterns: Iterable[str], fact: str) -> bool:
    values = values_of(fact)
    return bool(values) and all(any(kind.holds(pattern, value) for pattern in patterns) for value in values)


def _toml(patterns: tuple[str, ...]) -> str:
    texts = [json.dumps(pattern, ensure_ascii=False).replace("\x7f", "\\u007f") for pattern in patterns]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
