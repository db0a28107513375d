"""What of ai.onnx the suite excludes, and why: operators without a case, and element types that no case has.

`tests/generators/test_exclusions.py` enumerates onnx.defs: it fails for an operator, or an element type of its schemas,
that has neither cases nor a reason here, and for a reason of what has cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import defs

from epcheck.generators import registry, suite
from epcheck.generators.families.narrow import ONNX_NAMES
from epcheck.generators.schema import NUMPY_NAMES

NO_RUNTIME = "no execution provider of ONNX Runtime has a kernel, and ONNX gives it no function body"
RANDOM = "its outputs are random: the standard names their distribution, not one value that can be judged"
STRINGS = "it reads or writes strings, which numpy has no dtype for; of ONNX Runtime's providers only CPU has a kernel"
TRAINING = "it is for training: sessions inline its function body, whose operators have cases of their own"
NO_FORMULA = (
    "its page names a paper and no formula; implementations differ in the coefficients, 0.54 or 25/46 of Hamming's"
)

OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), RANDOM
    ),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), STRINGS),
    "ImageDecoder": NO_RUNTIME,
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), NO_FORMULA),
    "Constant": "it has no input: sessions make an initializer of it, and no provider runs it",
    "NegativeLogLikelihoodLoss": TRAINING,
    "SoftmaxCrossEntropyLoss": TRAINING,
}
"""Operator of ai.onnx -> why it has no case."""

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("complex64", "complex128", "float6e2m3", "float6e3m2"), "ONNX Runtime has no tensor of it"),
    "string": "a tensor of strings holds nothing that a provider computes",
}
"""Element type of ai.onnx, as ONNX spells it -> why no case has it."""

_NARROW = {onnx_name: name for name, onnx_name in ONNX_NAMES.items()}


@dataclass(frozen=True)
class Exclusion:
    """An operator of ai.onnx, or one that the installed onnx does not know, without a case.

    since_versions: in rising order; empty where the installed onnx has no schema.
    """

    name: str
    since_versions: tuple[int, ...]
    why: str


def list_excluded_operators() -> Iterator[Exclusion]:
    """Every operator of ai.onnx that the suite has no case of, by name, and what is declared for a newer onnx."""
    versions: dict[str, set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated:
            versions.setdefault(schema.name, set()).add(schema.since_version)
    covered = {operator.name for operator in registry.all_operators().values() if not operator.domain}
    for name in sorted(versions.keys() - covered):
        yield Exclusion(name, tuple(sorted(versions[name])), OPERATORS.get(name, ""))
    unknown = f"onnx {onnx.__version__} has no schema of it; a newer onnx has"
    for key in sorted(registry.unknown_operators()):
        yield Exclusion(key, (), unknown)


def list_element_types() -> Iterator[tuple[str, str]]:
    """Every element type that an operator of ai.onnx allows a tensor to have, and why no case has it, if none has.

    The types have ONNX's names, except that those of numpy and ml_dtypes have the names there.
    """
    allowed = {
        element[0]
        for schema in defs.get_all_schemas_with_history()
        if not schema.domain
        for constraint in schema.type_constraints
        for spelled in constraint.allowed_type_strs
        if (element := re.search(r"(?<=tensor\()\w+", spelled))
    }
    covered = suite.dtypes()
    names = {onnx_name: NUMPY_NAMES.get(onnx_name) or _NARROW.get(onnx_name, onnx_name) for onnx_name in allowed}
    for onnx_name, name in sorted(names.items(), key=lambda pair: pair[1]):
        yield name, "" if name in covered else TYPES.get(onnx_name, "")
