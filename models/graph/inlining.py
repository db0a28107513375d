"""A model's own functions in place of their calls."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import checker, inliner

from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.error import EpcheckError

_FAILED = "failed: "
"""Before the words of an assertion in onnx's inliner; ahead of it stands where that is in its source."""


class InliningError(EpcheckError, ValueError):
    """The functions of a model cannot be put in place of their calls; the message says why."""


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions of its own; the model itself where it has none.

    onnx's inliner is native code that trusts its input: a call with more inputs than the function has, and two
    functions of one name, raise errors of several kinds. Raises InliningError.
    """
    if not model.functions:
        return model
    try:
        return inliner.inline_local_functions(model)
    except (checker.ValidationError, RuntimeError, ValueError, TypeError) as error:
        why = " ".join(str(error).split()).rpartition(_FAILED)[2].rstrip(".")
        raise InliningError(f"its functions cannot be put in place of their calls: {why}") from None


def inline_file(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The same of the model of a file. Raises ModelFileError."""
    try:
        return inline_functions(model)
    except InliningError as error:
        raise ModelFileError(f"'{path}' is not a valid ONNX model: {error}") from None
