"""The designed cases: samples of an operator varied in several fields at once, their names begin with `design_`.

`designs.txt` in the folder of each operator family has a line for each: the sample that it begins with, the fields
that differ, version, dtypes and binding. `generators/fuzzing/designing.py` chose them among random variations, so that
as many pairs and triples of what a node may be (a dtype, a rank, an operand that is broadcast, a negative attribute, an
omitted input) as possible meet in some case. A line stays as it is when others are added, and so does its id.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from epcheck.generators.case import BuiltCase, Case, CaseContext
from epcheck.generators.fuzzing.node_mutation import mutate_node
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator, build_case, is_defined_here, random_source
from epcheck.generators.operator_index import family_folder

SOURCE = "designs"
KIND = "design"
KINDS = {KIND: "pairs and triples of dtype, rank, broadcasting, attributes, omitted inputs, sizes and data"}
"""What these cases are called -> what they are aimed at."""

FILE = "designs.txt"

OF, DATA_ARE = " of", "data are"

WORTH = ("every_dtype", "every_binding", "spread")
"""Fields of samples that say in how many dtypes and bindings they have cases: a design has its own."""


@dataclass(frozen=True)
class Design:
    """One case. sample: the name of the sample that it begins with. fields: name -> another value, as JSON has it.
    donors: name -> the sample whose value it is. values: how the data of one input differs, one of
    `node_mutation.STYLES`; empty where it does not."""

    operator: str
    since_version: int
    dtypes: tuple[str, ...]
    binding: str
    sample: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    donors: Mapping[str, str] = field(default_factory=dict)
    values: str = ""

    @property
    def name(self) -> str:
        """`design_axes_negative_with_steps_ties_data_3f2a91`: the end is a digest of all that differs."""
        changes = json.dumps([self.fields, self.donors, self.values], sort_keys=True)
        digest = sha256(f"{self.sample}{changes}".encode()).hexdigest()[:6]
        values = [f"{self.values}_data"] if self.values else []
        return "_".join([KIND, self.sample, "with", *sorted({*self.fields, *self.donors}), *values, digest])

    def vary_sample(self, operator: Operator[Any]) -> Any:
        """The sample with these fields. Raises KeyError where the operator has no such sample."""
        samples = _samples_by_name(operator)
        sample = samples[self.sample]
        changed = {name: _as_tuples(value) for name, value in self.fields.items()}
        changed |= {name: getattr(samples[donor], name) for name, donor in self.donors.items()}
        return dataclasses.replace(sample, name=self.name, **changed, **_mark_worth(sample))

    def make_node(self, operator: Operator[Any], case_id: str) -> Node:
        """The node, with the data that follows from the id."""
        dtypes = tuple(np.dtype(name) for name in self.dtypes)
        context = CaseContext(self.since_version, dtypes, random_source(case_id))
        node = operator.node(self.vary_sample(operator), context)
        return mutate_node(node, Random(case_id), self.values) if self.values else node

    def make_case(self, operator: Operator[Any]) -> Case:
        """The case of the design."""
        return Case(
            operator.name,
            operator.domain,
            self.since_version,
            "-".join(self.dtypes),
            self.name,
            self.binding,
            partial(_build, operator, self),
            kind=KIND,
            source=SOURCE,
        )

    def to_line(self) -> str:
        """The design as a line of its file: `Slice-13/int8/axes_negative[runtime] {"steps":[-1,2]}`. The id is that of
        the sample; `"axes of":"NAME"` names a donor, and `"data are":"ties"` is `values`."""
        changes = {**self.fields, **{f"{name}{OF}": donor for name, donor in self.donors.items()}}
        changes |= {DATA_ARE: self.values} if self.values else {}
        case_id = f"{self.operator}-{self.since_version}/{'-'.join(self.dtypes)}/{self.sample}[{self.binding}]"
        return f"{case_id} {json.dumps(changes, separators=(',', ':'))}"


def parse_line(line: str) -> Design:
    """The design of a line."""
    case_id, _, text = line.partition(" ")
    named, dtypes, rest = case_id.split("/")
    operator, _, version = named.rpartition("-")
    sample, _, binding = rest.removesuffix("]").partition("[")
    changes = json.loads(text)
    donors = {name.removesuffix(OF): changes.pop(name) for name in tuple(changes) if name.endswith(OF)}
    values = changes.pop(DATA_ARE, "")
    return Design(operator, int(version), tuple(dtypes.split("-")), binding, sample, changes, donors, values)


def _mark_worth(sample: Any) -> dict[str, bool]:
    return {field.name: True for field in dataclasses.fields(sample) if field.name in WORTH}


def _as_tuples(value: Any) -> Any:
    """A value of JSON as samples have it: lists are tuples."""
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    return {key: _as_tuples(item) for key, item in value.items()} if isinstance(value, dict) else value


@cache
def _samples_by_name(operator: Operator[Any]) -> Mapping[str, Any]:
    return {sample.name: sample for sample in operator.samples()}


def read_designs(operator: Operator[Any]) -> tuple[Design, ...]:
    """The designs of the operator in the order of its file; none where the operator is not of this package."""
    folder = family_folder(operator.key)
    return read_file(folder / FILE).get(operator.key, ()) if folder and is_defined_here(operator.samples) else ()


@cache
def read_file(path: Path) -> Mapping[str, tuple[Design, ...]]:
    """Operator -> the designs of a file, in its order; nothing where there is no file."""
    by_operator: dict[str, tuple[Design, ...]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        design = parse_line(line)
        by_operator[design.operator] = (*by_operator.get(design.operator, ()), design)
    return by_operator


def cases(operator: Operator[Any]) -> Iterator[Case]:
    """A case for each design of the operator."""
    for design in read_designs(operator):
        yield design.make_case(operator)


def _build(operator: Operator[Any], design: Design, case: Case) -> BuiltCase:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # infinities and means of nothing, which samples do not combine
        node = design.make_node(operator, case.id)
        return build_case(operator, node, operator.truth(node), case)
