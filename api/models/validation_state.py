"""What a validation that was interrupted, or ran out of its budget, has found out: a file with which it is continued.

The file is a stranger: JSON alone, read as declared types, and taken only where options, files and releases are the
same. What it says of paths, targets and arguments is not used: the call has its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import metadata
from pathlib import Path

from epcheck.api.models.examining import typed_data
from epcheck.api.models.examining.typed_data import ResultError
from epcheck.api.models.written_files import write_files
from epcheck.conformance.records import strict_json
from epcheck.conformance.records.target_facts import INCIDENTAL
from epcheck.conformance.targets.target import Target
from epcheck.generators.error import EpcheckError
from epcheck.models.execution.session import ModelSessions
from epcheck.models.validation.validate import ValidationRequest
from epcheck.models.validation.validation import Validation

SCHEMA = 1
"""Version of the file: it grows when a field changes its meaning."""

SUFFIX = ".state.json"
"""What the name of the file has behind that of the page."""

MOST_BYTES = 1 << 28
"""Of a file that is read."""

PACKAGES = ("epcheck", "onnx", "onnxruntime", "onnxruntime-directml", "numpy")
"""Packages whose releases have to be the same."""

BLOCK = 1 << 20

FREE = frozenset(("model", "evaluators", "budget_s", "known", "feeding", "reference"))
"""Fields of a request that may differ, or of which a digest has something else: the content of a file, a name."""


class StateError(EpcheckError, ValueError):
    """A validation cannot be continued: why, in a sentence."""


@dataclass(frozen=True)
class KeptModel:
    """What is known of a model on a target. request: a digest of the options and of the files that were read. external:
    of the files with its external data. validation: with the steps that it left out."""

    name: str
    target: str
    request: str
    external: str
    validation: Validation


@dataclass(frozen=True)
class KeptState:
    """The content of the file. releases: package -> its version."""

    schema: int
    releases: Mapping[str, str]
    models: tuple[KeptModel, ...]


def write_state(path: Path, kept: Sequence[KeptModel]) -> None:
    """Write the file. Raises ModelFileError."""
    document, parts = typed_data.encode(KeptState(SCHEMA, _releases(), tuple(kept)))
    assert not parts  # `keep_model` leaves arrays out
    write_files({path: strict_json.dumps(json.loads(document)).encode()})


def keep_model(name: str, request: ValidationRequest, validation: Validation) -> KeptModel:
    """What the file has of a validation: all but the values that nodes at fault received."""
    target = request.evaluators.candidate.name
    return KeptModel(name, target, digest_request(request), _digest_external(request.model, validation),
                     validation.plain)  # fmt: skip


def read_state(path: Path, requests: Mapping[tuple[str, str], ValidationRequest]) -> dict[tuple[str, str], Validation]:
    """(model, target) -> what is known of it, of those that are asked for. requests: by the same keys.

    Raises StateError where there is no such file, it is no state, or anything that decides a result has changed;
    TargetDown for a target that does not start.
    """
    state = _read(path)
    if state.schema != SCHEMA:
        raise StateError(f"{path} has schema {state.schema}, and this epcheck reads {SCHEMA}; run without --resume")
    _compare_releases(path, "package", state.releases, _releases())
    found: dict[tuple[str, str], Validation] = {}
    for kept in state.models:
        request = requests.get((kept.name, kept.target))
        if request is None:
            continue
        is_same = kept.request == digest_request(request)
        if not is_same or kept.external != _digest_external(request.model, kept.validation):
            raise StateError(
                f"{path}: the options, the model or the feeds of '{kept.name}' on '{kept.target}' are not those of the "
                "validation that was interrupted; run without --resume"
            )
        found[kept.name, kept.target] = kept.validation
    for target, validation in _targets_of(requests, found):
        if (known := validation.facts.get(target.name)) is not None:
            _compare_releases(path, f"target '{target.name}'", known, _facts_of(target))
    return found


def _read(path: Path) -> KeptState:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise StateError(f"{path} has more than {MOST_BYTES >> 20} MiB: no state of a validation; delete it")
        document = json.dumps(strict_json.loads(path.read_bytes())).encode()
        state: KeptState = typed_data.decode(KeptState, document, ())
    except FileNotFoundError:
        raise StateError(f"{path} is not there: no validation to continue; run without --resume") from None
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ResultError, ValueError, RecursionError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{path} is no state of a validation: {str(error)[:200]}; delete it") from None
    return state


def _targets_of(
    requests: Mapping[tuple[str, str], ValidationRequest], found: Mapping[tuple[str, str], Validation]
) -> Iterator[tuple[Target, Validation]]:
    """Each target once, with a validation that ran on it."""
    seen = set()
    for key, validation in found.items():
        for target in requests[key].evaluators.targets:
            if target.name not in seen and target.name in validation.facts:
                seen.add(target.name)
                yield target, validation


def _compare_releases(path: Path, what: str, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise StateError where anything differs that says what a target is."""
    for name in sorted({*then, *now}.difference(INCIDENTAL)):
        if then.get(name) != now.get(name):
            raise StateError(
                f"{path}: {what}: {name} was {then.get(name) or 'not there'} and is {now.get(name) or 'not there'}; "
                "run without --resume"
            )


def _facts_of(target: Target) -> Mapping[str, str]:
    with ModelSessions(target) as sessions:
        return sessions.start()


@cache
def _releases() -> Mapping[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest_request(request: ValidationRequest) -> str:
    """A digest of what decides the result: the options, the targets, and the content of the files. The budget is none
    of it."""
    evaluators, feeding = request.evaluators, request.feeding
    options = {field.name: repr(getattr(request, field.name)) for field in fields(request) if field.name not in FREE}
    fed = {
        "seeds": feeding.seeds,
        "dims": {name: list(sizes) for name, sizes in sorted(feeding.dims.items())},
        "feeds": _digest_path(feeding.path),
        "expect": _digest_path(feeding.expect),
    }
    parts = [options, fed, _digest_path(request.reference), _digest_path(request.model), str(evaluators.vulkan),
             *map(_describe, evaluators.targets)]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _describe(target: Target) -> list[object]:
    """What makes a target run a model as it does."""
    return [target.name, target.command, target.arguments, target.provider, sorted(target.options.items()),
            sorted(target.config.items()), sorted(target.set_variables.items()), target.device]  # fmt: skip


def _digest_external(model: Path, validation: Validation) -> str:
    """Of the files with external data that the validation names: regular files in the folder of the model."""
    folder = model.absolute().parent.resolve()
    digest = hashlib.sha256()
    for file in validation.inspection.external:
        path = (folder / file.name).resolve()
        if path.is_relative_to(folder) and path.is_file():
            digest.update(f"{file.name}|{_digest_path(path)}|".encode())
    return digest.hexdigest()


def _digest_path(path: Path | None) -> str:
    """Of a file, or of all files in a folder; empty without one, and where nothing is there."""
    if path is None or not path.exists():
        return ""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(f"{file.name}|{file.stat().st_size}|".encode())
            with file.open("rb") as content:
                while block := content.read(BLOCK):
                    digest.update(block)
    return digest.hexdigest()
