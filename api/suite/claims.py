"""The tables of what providers claim."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Annotated

from epcheck.api.option import Option
from epcheck.generators.claims import PROVIDERS, Claims, claims_of, documentation, table_path
from epcheck.generators.claims.documentation import DocumentationError
from epcheck.generators.error import EpcheckError

TIMEOUT_S = 60
"""Seconds to wait for a page."""


class ClaimsError(EpcheckError, ValueError):
    """A provider has no table of claims; the message says which have one."""


@dataclass(frozen=True)
class RefreshClaimsOptions:
    """Where the claims are read, whose they are, and which table is written. out: None stands for the one in use."""

    source: Annotated[
        str, Option("docs/OperatorKernels.md of an ONNX Runtime release: a file or a URL.", argument=True)
    ] = documentation.SOURCE
    provider: Annotated[str, Option("Provider whose table is refreshed.")] = PROVIDERS[0]
    out: Annotated[Path | None, Option("Claim table to write.", default="the one in use")] = None


@dataclass(frozen=True)
class RefreshedClaims:
    """A table that was written. added, changed: operator versions that the page has and the table had not, or had
    otherwise. undocumented: those that the page has not. operator_versions: how many the table has now."""

    path: Path
    added: tuple[str, ...]
    changed: tuple[str, ...]
    undocumented: tuple[str, ...]
    operator_versions: int


def refresh_claims(options: RefreshClaimsOptions | None = None) -> RefreshedClaims:
    """Take over what ONNX Runtime's documentation says of a provider's kernels.

    Raises ClaimsError when the provider has no table, DocumentationError when a page cannot be read or understood, and
    OSError when a file cannot be read.
    """
    options = options or RefreshClaimsOptions()
    path = table_path(options.provider)
    if path is None:
        raise _no_table(options.provider)
    rows = documentation.parse(_read(options.source), options.provider)
    found = documentation.refresh_table(json.loads(path.read_text(encoding="utf-8")), rows)
    written = options.out or path
    written.write_text(json.dumps(found.table, indent=1) + "\n", encoding="utf-8", newline="\n")
    return RefreshedClaims(
        path=written,
        added=tuple(found.added),
        changed=tuple(found.changed),
        undocumented=tuple(found.undocumented),
        operator_versions=len(found.table["operators"]),
    )


def claims_table(provider: str) -> Claims:
    """What the provider claims. Raises ClaimsError."""
    claims = claims_of(provider)
    if claims is None:
        raise _no_table(provider)
    return claims


def _no_table(provider: str) -> ClaimsError:
    return ClaimsError(f"provider '{provider}' has no claim table; choose one of {', '.join(PROVIDERS)}")


def _read(source: str) -> str:
    if "://" not in source:
        return Path(source).read_text(encoding="utf-8")
    if not source.startswith(("https://", "http://")):
        raise DocumentationError(f"'{source}' is neither a file nor an http(s) URL")
    try:
        with urllib.request.urlopen(source, timeout=TIMEOUT_S) as response:
            return str(response.read().decode("utf-8"))
    except (OSError, ValueError, HTTPException) as error:
        why = getattr(error, "reason", "") or error
        raise DocumentationError(
            f"{source} cannot be read ({getattr(why, 'strerror', '') or why}); without network, name this file: "
            "docs/OperatorKernels.md of an ONNX Runtime checkout"
        ) from None
