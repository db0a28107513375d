"""The suite: every operator that has a module in `operators/`, and the selection of cases from it."""

from __future__ import annotations

import copyreg
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from fnmatch import translate
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from epcheck.generators import onnx_tests, operators, schema
from epcheck.generators.case import Case
from epcheck.generators.directml import OperatorDesc
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.error import EpcheckError
from epcheck.generators.harvested import harvested_cases
from epcheck.generators.operator import Operator, is_built_by
from epcheck.generators.parameter_spaces import cases as parameter_spaces
from epcheck.generators.restamped import restamping
from epcheck.generators.restamped.restamping import Restamped
from epcheck.generators.several_nodes import fixed, graph_sample
from epcheck.generators.sources import interactions, optional_io, rank_9, rank_dtypes, undefined

CLOSE = 3
"""Ids that the message about an unknown one names at most."""


class SelectionError(EpcheckError, ValueError):
    """A selection names something that the suite does not have; the message lists what it has."""


@cache
def all_operators() -> dict[str, Operator[Any]]:
    """`Operator.key` -> operator, for every `Operator` that a module of `operators/` declares in its `OPERATORS`.

    Left out are those that are newer than the installed onnx: `unknown_operators`.
    """
    unknown = unknown_operators()
    found = {o.key: o for _, declared in _declared() for o in declared if o.key not in unknown}
    for kind in {type(operator) for operator in found.values()}:
        copyreg.pickle(kind, _reduced)
    return found


@cache
def unknown_operators() -> frozenset[str]:
    """The keys of declared operators of which the installed onnx has no schema, because it is older."""
    return frozenset(o.key for _, declared in _declared() for o in declared if not schema.knows(o.name, o.domain))


def _reduced(operator: Operator[Any]) -> Any:
    """How an operator is pickled: one of the suite as its key, because its functions may be lambdas."""
    if all_operators().get(operator.key) is operator:
        return operator_of, (operator.key,)
    return operator.__reduce_ex__(2)


def _declared() -> Iterator[tuple[str, Sequence[Operator[Any]]]]:
    """Every module of `operators/` by its full name, with the operators that it declares."""
    found = pkgutil.walk_packages(operators.__path__, f"{operators.__name__}.")
    for name in sorted((m.name for m in found if not m.ispkg), key=lambda name: name.rpartition(".")[2]):
        yield name, importlib.import_module(name).OPERATORS


def operator_of(key: str) -> Operator[Any]:
    """The suite's operator of that key; KeyError when it has none."""
    return all_operators()[key]


def group_of(key: str) -> str:
    """What reports group an operator under: the module of `operators/` that declares it, in words (`batch
    normalization`). For an operator that the suite does not have, as runs of other versions may, its key."""
    return _groups().get(key, key)


@cache
def _groups() -> dict[str, str]:
    return {
        operator.key: module.rpartition(".")[2].replace("_", " ")
        for module, declared in _declared()
        for operator in declared
    }


_RULES = (parameter_spaces, undefined, optional_io, rank_9, rank_dtypes, interactions, fixed)
"""The packages that make cases by rule."""

KINDS: Mapping[str, str] = {
    **parameter_spaces.KINDS,
    **undefined.KINDS,
    **optional_io.KINDS,
    **rank_9.KINDS,
    **rank_dtypes.KINDS,
    **interactions.KINDS,
    **graph_sample.KINDS,
}
"""Of cases that no operator declares itself -> what they are aimed at, in words."""

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


AnySource = Source | Restamped | Path
"""Whose cases: a path is that of a folder that `epcheck harvest` wrote."""

Sources = AnySource | tuple[AnySource, ...]


def sources_of(texts: str | Sequence[str]) -> tuple[AnySource, ...]:
    """Sources of their names, or of one: `suite`, `onnx`, `onnx@dml`, or a folder. Raises SelectionError and
    RestampError."""
    return tuple(dict.fromkeys(map(_source_of, (texts,) if isinstance(texts, str) else texts)))


def listed(sources: Sources) -> tuple[AnySource, ...]:
    """The sources as a tuple."""
    return sources if isinstance(sources, tuple) else (sources,)


def _source_of(text: str) -> AnySource:
    if text in list(Source):
        return Source(text)
    if restamped := restamping.of_text(text):
        return restamped
    if harvested_cases.is_harvest(Path(text)):
        return Path(text)
    raise SelectionError(
        f"unknown source '{text}'; it is suite, onnx, onnx@dml or a folder that `epcheck harvest model.onnx` makes"
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
    every = _of_source(source)
    for name in names:
        if name not in every:
            near = ", ".join(get_close_matches(name, every, cutoff=0.4)) or "nothing like it"
            raise SelectionError(f"unknown operator '{name}'; there is {near}; `epcheck list operators` prints all")
    wanted = set(dtypes)
    if unknown := wanted - (found := _dtypes_up_to(wanted, every)):
        listed = ", ".join(sorted(_single(found)))
        raise SelectionError(f"unknown dtype '{min(unknown)}'; the suite has: {listed}")
    selected = (
        case
        for name in dict.fromkeys(names or every)
        for case in (thinned(every[name]()) if thin else every[name]())
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
        raise SelectionError("the selection leaves no case; `epcheck list` prints the ids of all")


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


def _of_source(sources: Sources) -> Mapping[str, Callable[[], Iterable[Case]]]:
    """Operator key -> what gives its cases."""
    known = all_operators()
    if sources is Source.SUITE:
        return {key: partial(_of_operator, key) for key in known}
    found: dict[str, list[Callable[[], Iterable[Case]]]] = {}
    for source in listed(sources):
        if source is Source.SUITE:
            for key in known:
                found.setdefault(key, []).append(partial(_of_operator, key))
            continue
        read: dict[str, list[Case]] = {}
        for case in _read_from(source, known):
            read.setdefault(case.operator_key, []).append(case)
        for key, of_operator in read.items():
            found.setdefault(key, []).append(partial(iter, of_operator))
    return {key: partial(_joined, parts) for key, parts in found.items()}


def _read_from(source: AnySource, known: dict[str, Operator[Any]]) -> Iterator[Case]:
    if isinstance(source, Path):
        return harvested_cases.cases(source, known)
    if isinstance(source, Restamped):
        return restamping.cases(known, source)
    return onnx_tests.cases(known)


def _joined(parts: Iterable[Callable[[], Iterable[Case]]]) -> Iterator[Case]:
    return chain.from_iterable(part() for part in parts)


def _of_operator(key: str) -> Iterator[Case]:
    """The cases of an operator, those by rule, those of what it leaves undefined, and those of the fixed graphs that
    end with it."""
    yield from all_operators()[key].cases()
    for beside in _beside():
        yield from beside.get(key, ())


def by_rule() -> Iterator[Case]:
    """The cases that no operator declares itself: those of KINDS."""
    return (case for beside in _beside() for own in beside.values() for case in own)


@cache
def _beside() -> tuple[Mapping[str, Sequence[Case]], ...]:
    """Operator key -> cases that its declaration does not have."""
    return tuple(package.cases(all_operators()) for package in _RULES)


def thinned(every: Iterable[Case]) -> Iterator[Case]:
    """The first and the middle case of each operator version and dtypes, and of those by each rule: the last ones must
    be refused."""
    groups: dict[tuple[str, int, str, str], list[Case]] = {}
    for case in every:
        groups.setdefault((case.operator_key, case.since_version, case.dtype, case.kind), []).append(case)
    for each in groups.values():
        yield from (each[index] for index in sorted({0, len(each) // 2}))


def is_own(case: Case) -> bool:
    """Whether the case is built by this package alone, so that its id and the package's code say what it is."""
    return case.kind != "" or is_built_by(case, __package__)


def matches(case_id: str, pattern: str) -> bool:
    """A glob against the whole id ('[' is literal, since ids contain it), or a plain substring of it."""
    return any_matches((pattern,), case_id)


def any_matches(patterns: tuple[str, ...], case_id: str) -> bool:
    """Whether at least one of the patterns `matches`."""
    return _compiled(patterns).fullmatch(case_id) is not None


@cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_expression(pattern) for pattern in patterns) or r"(?!)", re.DOTALL)


def _expression(pattern: str) -> str:
    if any(wildcard in pattern for wildcard in "*?"):
        return translate(pattern.replace("[", "[[]"))
    return f".*{re.escape(pattern)}.*"


def case_by_id(case_id: str, source: Sources | None = None) -> Case:
    """The case of exactly that id. source: where it is; None for the suite and onnx's tests, which the id tells apart.
    Raises SelectionError, when there is none; it names those that differ in what the brackets hold, else those that
    are written almost alike."""
    if source is None:
        source = _source_in_id(case_id)
    of_operator = _by_id(source, case_id.partition("/")[0].rpartition("-")[0])
    if case_id in of_operator:
        return of_operator[case_id]
    close = [known for known in of_operator if known.startswith(f"{case_id}[")]
    close = close or get_close_matches(case_id, of_operator, CLOSE, cutoff=0.8)
    hint = f"similar: {', '.join(close)}" if close else "`epcheck list` prints the ids of all"
    if isinstance(source, Source) and f"/{harvested_cases.PREFIX}" in case_id:
        hint = "it is a harvested one; say --source FOLDER"
    raise SelectionError(f"unknown case '{case_id}'; {hint}")


def _source_in_id(case_id: str) -> AnySource:
    binding = case_id.rpartition("[")[2].removesuffix("]")
    if restamped := restamping.of_text(binding):
        return restamped
    return Source.ONNX if binding == onnx_tests.BINDING else Source.SUITE


def _by_id(source: Sources, operator: str) -> Mapping[str, Case]:
    return _kept_by_id(source, operator) if isinstance(source, Source | Restamped) else _read_by_id(source, operator)


def _read_by_id(source: Sources, operator: str) -> Mapping[str, Case]:
    every = _of_source(source)
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
