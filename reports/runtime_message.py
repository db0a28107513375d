"""Messages of ONNX Runtime without what is put around them: the stage and node of the session, folders, signatures.

A check that fails names its place in the source code first. Where the compiler writes signatures (GCC, Clang) that is
`/onnxruntime_src/onnxruntime/core/providers/cpu/tensor/pad.cc:511 onnxruntime::common::Status onnxruntime::PadImpl(
OpKernelContext*, T) [with T = float]`, elsewhere (MSVC) `pad.cc:511 onnxruntime::PadImpl`. Here both are the second.
Source: ONNX Runtime, include/onnxruntime/core/common/code_location.h, `CodeLocation::ToString`.
"""

from __future__ import annotations

import re

SOURCE_LINE = re.compile(r"([\w.+-]+\.(?:cpp|cc|cxx|cu|hpp|h))(?:\((\d+)\)|:(\d+))")
"""A line of source code in a message: `MLOperatorAuthorImpl.cpp(2508)`, `cast_op.cc:961`."""

LONGEST_READ = 2_000
"""Characters of a message that are looked at: one may hold the whole text of a stranger's model."""

_WRAPPING = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |Exception during initialization: |Load model from .*? failed:|"
    r"Non-zero status code returned while running \S+ node\. Name:'[^']*' Status Message: "
)
_FOLDERS = re.compile(rf"(?<![\w.+\\/-])(?:[A-Za-z]:)?(?:[\w.+-]*[\\/])+(?={SOURCE_LINE.pattern})")
_DECLARED = re.compile(r"[\w:<>,&*~ ]*")
_QUALIFIERS = (" const", " noexcept")
_TEMPLATE = " [with "
_CLOSING = {"(": ")", "[": "]"}


def readable(message: str) -> str:
    """The message, or a sentence that contains one, without what is put around it; LONGEST_READ characters of it."""
    plain = _FOLDERS.sub("", _WRAPPING.sub("", message[:LONGEST_READ]))
    shown, start = "", 0
    while place := SOURCE_LINE.search(plain, start):
        shown += plain[start : place.end()]
        name, start = _function(plain, place.end())
        shown += name
    return shown + plain[start:]


def _function(message: str, start: int) -> tuple[str, int]:
    """The name of the function whose signature begins there, and where that ends; nothing where none begins."""
    opening = message.find("(", start)
    declared = message[start : max(opening, start)]
    name = declared.rpartition(" ")[2]
    if "::" not in name or not _DECLARED.fullmatch(declared):
        return "", start
    end = _find_closing(message, opening)
    for qualifier in _QUALIFIERS:
        end += len(qualifier) * message.startswith(qualifier + " ", end)
    if message.startswith(_TEMPLATE, end):
        end = _find_closing(message, end + 1)
    return f" {name}", end


def _find_closing(message: str, opening: int) -> int:
    """Behind the bracket that closes the one at `opening`; the end of a message that was cut before it."""
    depth = 0
    for position in range(opening, len(message)):
        depth += (message[position] == message[opening]) - (message[position] == _CLOSING[message[opening]])
        if depth == 0:
            return position + 1
    return len(message)
