"""Claim tables that a user names, for the targets that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from epcheck.conformance.targets import condition
from epcheck.conformance.targets.condition import ConditionError
from epcheck.conformance.targets.target import Target
from epcheck.generators import claims
from epcheck.generators.claims import Claims
from epcheck.generators.claims.table import TableError


def text_of(path: Path) -> str:
    """The text of a file, which holds a claim table. Raises TableError when it cannot be read or is not valid."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"claim table '{path}' cannot be read: {error}") from None
    parse(text, str(path))
    return text


def parse(text: str, source: str) -> Claims:
    """The claims of a text, in which each `when` is a condition; `source` names it in errors. Raises TableError."""
    found = claims.parse(text, source)
    try:
        for when in (*([found.when] if found.when else ()), *(conditional.when for conditional in found.conditional)):
            condition.parse(when)
    except ConditionError as error:
        raise TableError(f"claim table '{source}': {error}") from None
    return found


def with_table(target: Target, path: Path) -> Target:
    """The target with the claims of a file. Raises TableError when they are another provider's."""
    found = parse(text_of(path), str(path))
    if target.provider != found.provider:
        has = f"has {target.provider}" if target.provider else "has no provider"
        raise TableError(f"claim table '{path}' is of {found.provider}, and target '{target.name}' {has}")
    return replace(target, claim_table=found)


def with_texts(target: Target, texts: Iterable[tuple[str, str]]) -> Target:
    """The target with the last of these claim tables, (source, text), that is about its provider. Raises TableError."""
    found = [table for source, text in texts if (table := parse(text, source)).provider == target.provider]
    return replace(target, claim_table=found[-1]) if found else target


def with_tables(targets: Sequence[Target], paths: Iterable[Path]) -> tuple[Target, ...]:
    """The targets, each with that file's claims that is about its provider; the last one counts. Raises TableError when
    a file is about none of them."""
    texts = [(str(path), text_of(path)) for path in paths]
    for source, text in texts:
        provider = parse(text, source).provider
        if all(target.provider != provider for target in targets):
            there = ", ".join(sorted({target.provider or "no provider" for target in targets}))
            raise TableError(f"claim table '{source}' is of {provider}, and no candidate has it: they have {there}")
    return tuple(with_texts(target, texts) for target in targets)


def explain_unused(target: Target, facts: Mapping[str, str]) -> str:
    """Why the target's claim table is not used where its worker reports these facts, in one sentence; empty where it
    is, or there is none."""
    if target.claims is None or target.narrow(facts).claims is not None:
        return ""
    where = condition.parse(target.claims.when)
    return (
        f"{target.name}: the claim table of {target.provider} applies where {where}, which differs here; no claim "
        f"counts, and declined or refused cases are noted; make a table with: epcheck probe -t {target.name}"
    )
