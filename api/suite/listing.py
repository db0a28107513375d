"""What the suite has, and which targets this machine has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from epcheck.api.option_types import Dtypes, Operators, Patterns, Thin
from epcheck.api.suite.option_types import CaseSource
from epcheck.conformance.targets import expectation
from epcheck.conformance.targets.choice import best_choice, why_no_dml
from epcheck.conformance.targets.config import CONFIG, load_config
from epcheck.conformance.targets.expectation import Expectation as Expectation
from epcheck.conformance.targets.recipes.environment import Environment, known_environments
from epcheck.conformance.targets.specification import resolve
from epcheck.generators import exclusions, suite
from epcheck.generators.case import Case as Case
from epcheck.generators.exclusions import Exclusion as Exclusion
from epcheck.generators.sources import version_converted
from epcheck.generators.sources.version_converted import Conversion as Conversion
from epcheck.generators.sources.version_converted import VersionConverted
from epcheck.generators.suite import SelectionError as SelectionError
from epcheck.generators.suite import Source as Source
from epcheck.generators.suite import sources_of as sources_of


@dataclass(frozen=True)
class CasesOptions:
    """Which cases. Empty tuples select all."""

    operators: Operators = ()
    dtypes: Dtypes = ()
    patterns: Patterns = ()
    source: CaseSource = Source.SUITE
    thin: Thin = False


@dataclass(frozen=True)
class OperatorCases:
    """An operator, the versions of it that have cases, in rising order, and how many cases there are."""

    name: str
    since_versions: tuple[int, ...]
    cases: int


@dataclass(frozen=True)
class ElementType:
    """An element type of ai.onnx as numpy, or else ONNX, spells it. why: no case has it; empty where some have."""

    name: str
    why: str


@dataclass(frozen=True)
class AvailableTarget:
    """A name that `RunOptions.targets` takes, and in words what it stands for, or why it is unavailable."""

    name: str
    meaning: str


DEFAULT = "default"
"""Stands in the list of targets for the one that is chosen where none is named."""


def cases(options: CasesOptions | None = None) -> Iterator[Case]:
    """The selected cases in their stable order. Raises SelectionError."""
    chosen = options or CasesOptions()
    return suite.cases(chosen.operators, chosen.dtypes, chosen.patterns, source=chosen.source, thin=chosen.thin)


def operators(options: CasesOptions | None = None) -> tuple[OperatorCases, ...]:
    """The operators of the selected cases, by name, without those that `left_out` has. Raises SelectionError."""
    chosen = options or CasesOptions()
    without = {each.name for each in left_out(chosen)}
    names = tuple(name for name in chosen.operators if name not in without)
    versions: dict[str, Counter[int]] = {}
    if names or not chosen.operators:
        for case in cases(replace(chosen, operators=names)):
            versions.setdefault(case.operator_key, Counter())[case.since_version] += 1
    return tuple(OperatorCases(name, tuple(sorted(of)), of.total()) for name, of in sorted(versions.items()))


def version_conversions(provider: str) -> tuple[Conversion, ...]:
    """What becomes of each of onnx's node tests in the versions that a provider claims (`dml`), and why it stays as it
    is where it does. Raises ConversionError."""
    return tuple(version_converted.convert_tests(VersionConverted(provider)))


def left_out(options: CasesOptions | None = None) -> tuple[Exclusion, ...]:
    """The operators of ai.onnx without a case, each with the reason: those that are named, or all where nothing is
    selected."""
    chosen = options or CasesOptions()
    if replace(chosen, operators=()) != CasesOptions():
        return ()
    every = tuple(exclusions.list_excluded_operators())
    return tuple(each for each in every if each.name in chosen.operators) if chosen.operators else every


def element_types() -> tuple[ElementType, ...]:
    """Every element type that a schema of ai.onnx allows, by name, each with the reason why no case has it, if so."""
    return tuple(ElementType(name, why) for name, why in exclusions.list_element_types())


def expectations(target: str | None = None, options: CasesOptions | None = None) -> tuple[Expectation, ...]:
    """What is expected of a target, wherever it runs: None for the best of this machine. options: only what matches one
    of these cases. Raises TargetError, ExpectationError, LabError, RuntimeInstallError and SelectionError."""
    known = resolve(target or best_choice().specification, load_config()).expectations
    if options is None or options == CasesOptions():
        return known
    unmatched = set(expectation.stale(known, [case.id for case in cases(options)]))
    return tuple(entry for entry in known if entry not in unmatched)


def available_targets() -> tuple[AvailableTarget, ...]:
    """The targets that have a name, those of `epcheck.toml` among them, and last the default. Raises TargetError."""
    best, lab = best_choice(), why_no_dml() or "ready"
    return (
        AvailableTarget("cpu", "CPUExecutionProvider of this interpreter"),
        AvailableTarget("dml", lab),
        AvailableTarget("directml", lab),
        AvailableTarget("reference", "onnx.reference.ReferenceEvaluator"),
        *(AvailableTarget(made.name, _meaning(made)) for made in known_environments()),
        *(AvailableTarget(name, CONFIG) for name in load_config().get("targets", {})),
        AvailableTarget(DEFAULT, f"{best.specification}: {best.reason}"),
    )


def target_names() -> tuple[str, ...]:
    """The names of targets that every machine knows, whether it has them or not."""
    return ("cpu", "dml", "directml", "reference", *(made.name for made in known_environments()))


def _meaning(made: Environment) -> str:
    return made.recipe.about if made.is_complete else f"{made.recipe.about}; run: epcheck env create {made.name}"
