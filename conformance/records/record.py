"""The verdict on one case and one candidate, as a line of JSON keeps it."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.terms import PASS


@dataclass(frozen=True)
class Expected:
    """The expectation that matched: its glob, and why the deviation is tolerated for now. when: on which machines it
    applies, in words; empty for all. where: the condition for which of its cases it is; empty for all. variant: the
    variants that may differ, in words; empty for all."""

    case: str
    status: str
    reason: str
    link: str = ""
    when: str = ""
    where: str = ""
    variant: str = ""


@dataclass(frozen=True)
class Direct:
    """What DirectML does with the node's operator when it is called without the provider, and who is then to blame.

    blame: LOWERING, BELOW, UNSUPPORTED, DIFFERENTLY or NOT_CALLED.
    """

    blame: str
    opinion: Opinion


@dataclass(frozen=True)
class VariantResult:
    """What came of a case in another way of running it.

    variant: `level=all`, or an axis alone where there is none of it. state: SAME, CLOSE, DIFFERS, UNSTEADY or NOT_RUN.
    reason: in words, but for SAME. opinion: of the variant, for DIFFERS and UNSTEADY.
    """

    variant: str
    state: str
    reason: str = ""
    opinion: Opinion | None = None


@dataclass(frozen=True)
class Record:
    """One case on one candidate: what was asked, what each target said, and the verdict.

    oracles: oracle name -> `agrees`, `disagrees` or `cannot: why`, each against the suite's own oracle.
    claimed: whether the candidate's documentation claims the operator, version and dtypes; None without a claim table.
    reason: the verdict in words. direct: of a failure that was explained (`epcheck run --explain`). variants: what came
    of the case in other ways of running it (`epcheck run --variants`).
    In JSON the case's facts stand beside the other fields, in one object.
    """

    case: CaseFacts
    candidate: Opinion
    baseline: Opinion | None
    oracles: Mapping[str, str]
    status: str
    blame: str
    reading: str
    reason: str
    claimed: bool | None
    expectation: Expected | None = None
    direct: Direct | None = None
    variants: tuple[VariantResult, ...] = ()

    @property
    def case_id(self) -> str:
        """The id of the case."""
        return self.case.case_id

    def to_fields(self) -> Any:
        """The record as JSON's own types, as `encode` writes it."""
        return strict_json.loads(encode(self))


def accuracy_of(case: CaseFacts, opinion: Opinion) -> Accuracy | None:
    """How far the outputs of which the opinion is are from the truth; None where there is nothing to measure."""
    return opinion.accuracy or (case.rounded if opinion.status == PASS else None)


def encode(record: Record) -> str:
    """The record as one line of JSON. Raises nothing: what JSON has no type for is written as strict_json does."""
    opinions = f'"candidate":{_opinion_text(record.candidate)},"baseline":{_opinion_text(record.baseline)}'
    rest = {
        field.name: typed_json.to_json(value)
        for field in typed_json.fields(Record)[3:]
        if (value := getattr(record, field.name)) != field.default
    }
    return f"{record.case.text[:-1]},{opinions},{strict_json.dumps(rest)[1:]}"


@lru_cache(maxsize=256)
def _opinion_text(opinion: Opinion | None) -> str:
    """An opinion as JSON; the cases of a session that all pass share theirs."""
    return strict_json.dumps(typed_json.to_json(opinion))


def decode(line: bytes | str) -> Record:
    """The record that `encode` wrote. Raises ValueError (a RecordError when a part is missing or of another type),
    RecursionError for absurd nesting."""
    fields = typed_json.loads(_Line, line)
    case = CaseFacts(*[getattr(fields, name) for name in _CASE_FIELDS])
    return Record(case, *[getattr(fields, name) for name in _OTHER_FIELDS])


def with_present_names(line: bytes) -> bytes:
    """A line of a journal with the field `binding`, which earlier versions of epcheck call `variant`."""
    return _EARLIER_BINDING.sub(rb'\1"binding":', line, count=1)


_EARLIER_BINDING = re.compile(
    rb'^(\{"case_id":STRING,"operator":STRING,"domain":STRING,"since_version":\d+,"opset":\d+,"dtype":STRING,'
    rb'"sample":STRING,)"variant":'.replace(b"STRING", rb'"(?:[^"\\]|\\.)*+"')
)
"""The beginning of a line, whose fields are in this order; a field `variant` elsewhere is one of a VariantResult."""


def _line_type() -> type[msgspec.Struct]:
    """What a line holds: one object with the fields of CaseFacts and those of Record but `case`."""
    types = {**typing.get_type_hints(CaseFacts), **typing.get_type_hints(Record)}
    fields = [*dataclasses.fields(CaseFacts), *dataclasses.fields(Record)[1:]]
    is_optional = {field.name: field.default is not dataclasses.MISSING for field in fields}
    required = [(field.name, types[field.name]) for field in fields if not is_optional[field.name]]
    optional = [(field.name, types[field.name], field.default) for field in fields if is_optional[field.name]]
    return msgspec.defstruct("Record", [*required, *optional])


_Line = _line_type()
_CASE_FIELDS = [field.name for field in dataclasses.fields(CaseFacts)]
_OTHER_FIELDS = [field.name for field in dataclasses.fields(Record)[1:]]
