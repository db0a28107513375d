"""The suite: every operator that has a module in `operators/`, and the selection of cases from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path

from epcheck.generators.case import Case
from epcheck.generators.case_pattern import matches
from epcheck.generators.directml import OperatorDesc
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.error import EpcheckError
from epcheck.generators.nearest import ask_if_meant, find_nearest
from epcheck.generators.operator import DECLARED, is_defined_here
from epcheck.generators.registry import all_operators, operator_of
from epcheck.generators.sources import (
    designs,
    graphs,
    harvested,
    interactions,
    magnitudes,
    node_tests,
    optional_io,
    pairwise,
    rank_9,
    rank_dtypes,
    undefined,
    version_converted,
)
from epcheck.generators.sources.case_source import CaseSource
from epcheck.generators.sources.version_converted import VersionConverted


class SelectionError(EpcheckError, ValueError):
    """A selection names something that the suite does not have; the message lists what it has."""


ENGINES: tuple[CaseSource, ...] = (
    pairwise,
    undefined,
    optional_io,
    rank_9,
    rank_dtypes,
    interactions,
    graphs,
    designs,
    magnitudes,
)
"""What makes the cases of an operator beside those of its samples, in the order of its list."""

KINDS: Mapping[str, str] = {kind: aim for engine in ENGINES for kind, aim in engine.KINDS.items()}
"""Kind of a case that an engine makes -> what it is aimed at."""

OWN_SOURCES = frozenset({DECLARED, *(engine.SOURCE for engine in ENGINES)})
"""`Case.source` of the cases that this package makes of its own declarations."""

LOOKED_AT = 1000
"""Cases of each operator in which DirectML operators, and tensors of them, are looked for that no case before has."""


def lowerings() -> Iterator[Lowering]:
    """A lowering of each DirectML operator that a case of the suite becomes, and as many more as it takes to have each
    of its tensors in one of them."""
    seen: set[tuple[str, str]] = set()
    for operator in all_operators().values():
        for case in islice(operator.cases(), LOOKED_AT):
            lowering = case.build().lowering
            if lowering is not None and not (tensors := _tensors_of(lowering.description)) <= seen:
                seen |= tensors
                yield lowering


def _tensors_of(description: OperatorDesc) -> set[tuple[str, str]]:
    """(operator, tensor) for each tensor that is there; those of an array have one name."""
    present = (name for name, tensor in description.tensors().items() if tensor is not None)
    return {(description.NAME, name.partition("[")[0]) for name in present}


class Source(StrEnum):
    """Where cases come from: the generators of this package, or the node tests of the installed onnx package."""

    SUITE = "suite"
    ONNX = "onnx"


AnySource = Source | VersionConverted | Path
"""Whose cases: a path is that of a folder that `epcheck harvest` wrote."""

Sources = AnySource | tuple[AnySource, ...]


def sources_of(texts: str | Sequence[str]) -> tuple[AnySource, ...]:
    """Sources of their names, or of one: `suite`, `onnx`, `onnx@dml`, or a folder. Raises SelectionError and
    ConversionError."""
    return tuple(dict.fromkeys(map(_source_of, (texts,) if isinstance(texts, str) else texts)))


def list_sources(sources: Sources) -> tuple[AnySource, ...]:
    """The sources as a tuple."""
    return sources if isinstance(sources, tuple) else (sources,)


def _source_of(text: str) -> AnySource:
    if text in list(Source):
        return Source(text)
    if converted := version_converted.parse(text):
        return converted
    if harvested.is_harvest(Path(text)):
        return Path(text)
    raise SelectionError(
        f"unknown source '{text}'; write suite, onnx, onnx@dml or a folder of `epcheck harvest model.onnx`"
    )


def cases(
    names: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    patterns: Sequence[str] = (),
    limit: int | None = None,
    source: Sources = Source.SUITE,
    thin: bool = False,
) -> Iterator[Case]:
    """The selected cases in their stable order.

    names: operators, as ONNX spells them; `com.microsoft::Gelu` for one of another domain. dtypes: numpy names; a case
    matches when one of its varied dtypes does. patterns: globs or substrings of the case id; a case matches when one of
    them does. limit: at most so many. source: whose cases, of several an operator's of each in turn. thin: a few of
    each operator version and dtypes, for a quick look at everything. Raises SelectionError for an unknown operator or
    dtype, or when nothing is left, and HarvestError for a folder that cannot be read.
    """
    every = _list_source_cases(source)
    for name in names:
        if name not in every:
            meant = ask_if_meant(find_nearest(name, every)) or "`epcheck list operators` prints all."
            raise SelectionError(f"unknown operator '{name}'. {meant}")
    wanted = set(dtypes)
    if unknown := wanted - (found := _dtypes_up_to(wanted, every)):
        known = sorted(_single(found))
        meant = ask_if_meant(find_nearest(min(unknown), known)) or f"The suite has: {', '.join(known)}"
        raise SelectionError(f"unknown dtype '{min(unknown)}'. {meant}")
    selected = (
        case
        for name in dict.fromkeys(names or every)
        for case in (thin_cases(every[name]()) if thin else every[name]())
        if (not wanted or wanted & {case.dtype, *case.dtype.split("-")})
        and (not patterns or any(matches(case.id, pattern) for pattern in patterns))
    )
    count = 0
    for case in selected:
        if limit is not None and count >= limit:
            return
        count += 1
        yield case
    if not count and limit != 0:
        raise SelectionError("no case matches the selection; `epcheck list` prints all case ids")


def _dtypes_up_to(wanted: set[str], every: Mapping[str, Callable[[], Iterable[Case]]]) -> set[str]:
    """The dtypes of cases, and the single ones in them, until those that are wanted are among them, which is soon."""
    found: set[str] = set()
    for of_operator in every.values():
        for case in of_operator() if wanted - found else ():
            if case.dtype not in found:
                found |= {case.dtype, *case.dtype.split("-")}
                if wanted <= found:
                    break
    return found


def _list_source_cases(sources: Sources) -> Mapping[str, Callable[[], Iterable[Case]]]:
    """Operator key -> what gives its cases."""
    known = all_operators()
    if sources is Source.SUITE:
        return {key: partial(_list_operator_cases, key) for key in known}
    found: dict[str, list[Callable[[], Iterable[Case]]]] = {}
    for source in list_sources(sources):
        if source is Source.SUITE:
            for key in known:
                found.setdefault(key, []).append(partial(_list_operator_cases, key))
            continue
        read: dict[str, list[Case]] = {}
        for case in _read_from(source):
            read.setdefault(case.operator_key, []).append(case)
        for key, of_operator in read.items():
            found.setdefault(key, []).append(partial(iter, of_operator))
    return {key: partial(_join_parts, parts) for key, parts in found.items()}


def _read_from(source: AnySource) -> Iterator[Case]:
    if isinstance(source, Path):
        return harvested.cases(source)
    if isinstance(source, VersionConverted):
        return version_converted.cases(source)
    return node_tests.cases()


def _join_parts(parts: Iterable[Callable[[], Iterable[Case]]]) -> Iterator[Case]:
    return chain.from_iterable(part() for part in parts)


def _list_operator_cases(key: str) -> Iterator[Case]:
    """The cases of an operator's samples, then those of each engine."""
    operator = operator_of(key)
    yield from operator.cases()
    for engine in ENGINES:
        yield from engine.cases(operator)


def engine_cases() -> Iterator[Case]:
    """The cases of every engine: those of KINDS."""
    operators = tuple(all_operators().values())
    return (case for engine in ENGINES for operator in operators for case in engine.cases(operator))


def thin_cases(every: Iterable[Case]) -> Iterator[Case]:
    """The first and the middle case of each operator version and dtypes, and of those by each rule: the last ones must
    be refused."""
    groups: dict[tuple[str, int, str, str], list[Case]] = {}
    for case in every:
        groups.setdefault((case.operator_key, case.since_version, case.dtype, case.kind), []).append(case)
    for each in groups.values():
        yield from (each[index] for index in sorted({0, len(each) // 2}))


def is_own(case: Case) -> bool:
    """Whether the case is built by this package alone, so that its id and the package's code say what it is."""
    return case.source in OWN_SOURCES and is_defined_here(case.builder)


def case_by_id(case_id: str, source: Sources | None = None) -> Case:
    """The case of exactly that id. source: where it is; None for the suite and onnx's tests, which the id tells apart.
    Raises SelectionError, when there is none; it names those that differ in what the brackets hold, else those that
    are written almost alike."""
    if source is None:
        source = _source_in_id(case_id)
    operator = case_id.partition("/")[0].rpartition("-")[0]
    of_operator = _find_by_id(source, operator)
    if case_id in of_operator:
        return of_operator[case_id]
    if isinstance(source, Source) and f"/{harvested.PREFIX}" in case_id:
        raise SelectionError(f"unknown case '{case_id}'; harvested cases need --source FOLDER")
    close = tuple(known for known in of_operator if known.startswith(f"{case_id}["))
    for near in find_nearest(operator, _list_source_cases(source))[:1] if not of_operator else ():
        of_operator = _find_by_id(source, near)
    hint = ask_if_meant(close or find_nearest(case_id, of_operator)) or "`epcheck list` prints all case ids."
    raise SelectionError(f"unknown case '{case_id}'. {hint}")


def _source_in_id(case_id: str) -> AnySource:
    binding = case_id.rpartition("[")[2].removesuffix("]")
    if converted := version_converted.parse(binding):
        return converted
    return Source.ONNX if binding == node_tests.BINDING else Source.SUITE


def _find_by_id(source: Sources, operator: str) -> Mapping[str, Case]:
    return (
        _kept_by_id(source, operator)
        if isinstance(source, Source | VersionConverted)
        else _read_by_id(source, operator)
    )


def _read_by_id(source: Sources, operator: str) -> Mapping[str, Case]:
    every = _list_source_cases(source)
    return {case.id: case for case in every[operator]()} if operator in every else {}


_kept_by_id = lru_cache(maxsize=32)(_read_by_id)
"""Who asks for one case of an operator often asks for more; a folder may change."""


@cache
def dtypes() -> frozenset[str]:
    """The dtypes, by their numpy names, of which the suite has cases."""
    return _single(case.dtype for case in cases())


def _single(labels: Iterable[str]) -> frozenset[str]:
    """The dtypes in labels that may name several."""
    return frozenset(name for label in labels for name in label.split("-"))
