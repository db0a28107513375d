"""What the suite excludes, and why: operators of ai.onnx and kernels of other domains without a case, and element types
that no case has.

`tests/generators/test_exclusions.py` enumerates onnx.defs: it fails for an operator, or an element type of its schemas,
that has neither cases nor a reason here, and for a reason of what has cases. `epcheck coverage --kernels` compares the
kernels of a provider with the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import onnx
from onnx import defs

from epcheck.generators import registry, suite
from epcheck.generators.families.narrow import ONNX_NAMES
from epcheck.generators.schema import NUMPY_NAMES

NO_RUNTIME = "no execution provider of ONNX Runtime has a kernel, and ONNX gives it no function body"
RANDOM = "its outputs are random: the standard names their distribution, not one value that can be judged"
STRINGS = "it reads or writes strings, which numpy has no dtype for; of ONNX Runtime's providers only CPU has a kernel"

OPERATORS: Mapping[str, str] = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), RANDOM
    ),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), STRINGS),
    "ImageDecoder": NO_RUNTIME,
    "Constant": "it has no input: sessions make an initializer of it, and no provider runs it",
}
"""Operator of ai.onnx -> why it has no case."""


class Reason(NamedTuple):
    """Why a kernel has no case, and where one can read it: a page, or a file of ONNX Runtime's repository."""

    why: str
    source: str


CONTRIB = "docs/ContribOperators.md"
ML = Reason(
    "it is an operator of classical machine learning, of which CPU is the only provider with a kernel",
    "docs/OperatorKernels.md, ai.onnx.ml",
)
DOMAINS: Mapping[str, Reason] = {
    "ai.onnx.ml": ML,
    "com.microsoft.nchwc": Reason(
        "only the optimiser inserts it, in blocked layouts; graphs whose last node is a Conv or a pool have cases",
        "onnxruntime/core/optimizer/nchwc_transformer.cc",
    ),
    "com.ms.internal.nhwc": Reason(
        "sessions insert it for providers that want channels last; a model that has one is refused",
        "onnxruntime/core/graph/contrib_ops/internal_nhwc_onnx_schemas.cc",
    ),
}
"""Domain of which no operator has a case of its own -> why."""

GENERATION = Reason("its attributes hold the graphs of a whole decoder, which it runs to the end of a text", CONTRIB)
TEXT = Reason(STRINGS, CONTRIB)
MEMCPY = Reason(
    "sessions insert this node themselves; a model that has one is refused",
    "onnxruntime/core/optimizer/transformer_memcpy.cc",
)
EXPERIMENTAL = Reason(
    "an experiment of ONNX before 1.5 that no released opset has", "onnxruntime/core/graph/contrib_ops/contrib_defs.cc"
)

KERNELS: Mapping[str, Reason] = {
    **dict.fromkeys(
        (f"com.microsoft::{name}" for name in ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")),
        GENERATION,
    ),
    **dict.fromkeys(("com.microsoft::Tokenizer",), TEXT),
    **dict.fromkeys(("MemcpyFromHost", "MemcpyToHost"), MEMCPY),
    **dict.fromkeys(("DynamicSlice", "GRUUnit", "GivenTensorFill", "Scale"), EXPERIMENTAL),
    "com.microsoft::SparseAttention": Reason(
        "past and present must be one buffer, which inputs and outputs of a session are only where they are bound so",
        f"{CONTRIB}; onnxruntime/contrib_ops/cpu/sparse/sparse_attention.cc",
    ),
    "com.microsoft::SparseToDenseMatMul": Reason(
        "its first input is a sparse tensor, which no array of a case is, and no other operator makes or takes", CONTRIB
    ),
    "com.microsoft::MatMulFpQ4": Reason(
        "its weights are a blob that MLAS packs, in an order that its page does not give", CONTRIB
    ),
    "com.microsoft::GatherPacked": Reason(
        "its rows have byte layouts of a contract that its page only refers to (docs/PackedWeightFormats.md)", CONTRIB
    ),
    "com.microsoft::BiasSoftmax": Reason(
        "CUDA's provider alone has a kernel, for which the optimiser makes it of Add and Softmax; its page broadcasts "
        "the bias at a `broadcast_axis` that it does not define",
        f"{CONTRIB}; docs/OperatorKernels.md",
    ),
    "com.microsoft::WordConvEmbedding": Reason(
        "its page names a convolution, and not the tanh and the maximum over places that a kernel adds", CONTRIB
    ),
    "GroupNorm": Reason(
        "no opset of ONNX has an operator of this name: DirectML's provider registers GroupNormalization-21 under it",
        "onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators/OperatorRegistration.cpp",
    ),
    "com.microsoft::SampleOp": Reason("it shows how to write an operator, and no model has it", CONTRIB),
    "com.microsoft::EPContext": Reason(
        "it holds what a provider has compiled, which no other can read; `--variants` runs every case through one",
        "https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html",
    ),
}
"""Operator of another domain than ai.onnx, or one that ONNX does not have -> why its kernel has no case."""

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


def why_excluded(name: str) -> Reason | None:
    """Why a kernel of an operator needs no case; None where nobody says. name: as `qualified_name` has it."""
    if name in OPERATORS:
        return Reason(OPERATORS[name], "the operator's page in ONNX's Operators.md")
    return KERNELS.get(name) or DOMAINS.get(name.rpartition("::")[0])


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
