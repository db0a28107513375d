"""Which kernels and which schemas a build of ONNX Runtime has, as it says itself; of a provider that comes as a library
of its own, and registers its kernels where Python cannot see them, the words in the file of that library."""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Any

import onnxruntime

_WORD = re.compile(rb"(?<=\0)[A-Za-z][A-Za-z0-9_.]{1,99}(?=\0)")
"""A C string that may be the name of an operator, or end with one: com.microsoft.QuickGelu."""

_BEGINNING = re.compile(rb"[\x48\x49][\xb8-\xbf]([A-Za-z][A-Za-z0-9_]{7})")
"""The instruction of x86-64 that loads 8 characters: compilers write strings of up to 15 in such, as std::string holds
so many itself."""


def answer_registry(request: dict[str, Any], plugin: Any) -> dict[str, Any]:
    """The answer to a `registry` request, as `protocol.py` has it. plugin: the library that is registered, or None."""
    native: Any = onnxruntime.capi.onnxruntime_pybind11_state
    provider = str(request["provider"])
    schemas = {(schema.domain, schema.name) for schema in native.get_all_operator_schema() if not schema.deprecated}
    answer: dict[str, Any] = {"stage": "done", "schemas": sorted(schemas), "kernels": [], "library": "", "words": []}
    if request["kernels"]:
        return {**answer, "kernels": list_kernels(native, provider)}
    path = find_library(provider, plugin)
    if path is None:
        return answer
    words, beginnings = read_words(path)
    return {**answer, "library": path.name, "words": words, "beginnings": beginnings}


def list_kernels(native: Any, provider: str) -> list[Any]:
    """[domain, operator, first version, last version, {type constraint: [type strings]}] of each of the provider's."""
    found = []
    for kernel in native.get_all_opkernel_def():
        if kernel.provider == provider:
            first, last = kernel.version_range
            found.append([kernel.domain, kernel.op_name, first, last, dict(kernel.type_constraints)])
    return found


def find_library(provider: str, plugin: Any) -> Any:
    """The file that the provider's code is in; None where it is in the runtime's own."""
    if plugin:
        return Path(plugin.library)
    word = provider.replace("ExecutionProvider", "").lower()
    folder = Path(onnxruntime.__file__).parent / "capi"
    return next(iter(sorted(folder.glob(f"*onnxruntime_providers_{word}.*"))), None)


def read_words(path: Path) -> tuple[list[str], list[str]]:
    """The C strings in a library that may be names of operators, and the beginnings, of 8 characters, of those that are
    written in instructions; each sorted."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        words = {match.group().decode() for match in _WORD.finditer(content)}
        beginnings = {match.group(1).decode() for match in _BEGINNING.finditer(content)}
    return sorted(words), sorted(beginnings)
