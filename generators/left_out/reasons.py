"""Why operators and element types of ai.onnx have no case.

`tests/generators/left_out/test_left_out.py` enumerates onnx.defs: it fails for an operator, or an element type of its
schemas, that has neither cases nor a reason here, and for a reason of what has cases.
"""

from __future__ import annotations

from collections.abc import Mapping

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
