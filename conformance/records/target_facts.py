"""The facts of a target (its fingerprint), as several machines state them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

INCIDENTAL = ("interpreter", "luid")
"""Facts of a target that say where it is installed, not what it is. An adapter has another LUID each time that Windows
starts."""

ON_CPU = ("CPUExecutionProvider", "XnnpackExecutionProvider", "DnnlExecutionProvider")
"""Providers that compute on a CPU, whatever their options."""

BETWEEN = " | "
"""Stands between the values of several machines."""


def base_of(target: str) -> str:
    """The name of a target without its adapter and its release: `dml` of `dml:1@1.20.1`. Of a path, a callable and a
    plugin it is no name that a target has."""
    return target.partition("@")[0].partition(":")[0]


def differing_facts(
    first: Mapping[str, str], second: Mapping[str, str], may_differ: Collection[str] = ()
) -> list[tuple[str, str, str]]:
    """(fact, its value in the first, its value in the second) of every fact that two machines' targets do not share.

    may_differ: facts that do not count, besides the INCIDENTAL ones.
    """
    names = [name for name in {**first, **second} if name not in INCIDENTAL and name not in may_differ]
    values = [(name, first.get(name, ""), second.get(name, "")) for name in names]
    return [(name, left, right) for name, left, right in values if first.get(name) != second.get(name)]


def tell_apart(different: Iterable[tuple[str, str, str]]) -> str:
    """What `differing_facts` found, in words."""
    return ", ".join(f"{fact} is '{left}' and '{right}'" for fact, left, right in different)


def allowing(different: Iterable[tuple[str, str, str]]) -> str:
    """The options that let what `differing_facts` found differ."""
    return " ".join(f"--may-differ {fact}" for fact, _, _ in different)


def varying_facts(machines: Sequence[Mapping[str, str]]) -> list[str]:
    """The facts in which several machines' targets are not the same."""
    return list(dict.fromkeys(fact for facts in machines for fact, _, _ in differing_facts(machines[0], facts)))


def join_facts(machines: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The facts of several machines in one mapping: where they differ, each value once, with BETWEEN between."""
    values: dict[str, dict[str, None]] = {}
    for facts in machines:
        for name, value in facts.items():
            values.setdefault(name, {})[value] = None
    return {name: BETWEEN.join(different) for name, different in values.items()}


def values_of(fact: str) -> tuple[str, ...]:
    """The values that `join_facts` joined; none of an empty fact."""
    return tuple(value for value in fact.split(BETWEEN) if value)
