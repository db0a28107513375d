"""Provider profiles: what a provider claims and what is expected of it, as JSON that other programs read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from epcheck.api.option import Option
from epcheck.conformance.profile import profile
from epcheck.conformance.profile.exclusions import expectations_toml
from epcheck.conformance.profile.profile import ProfileError as ProfileError
from epcheck.conformance.profile.profile import ProviderProfile as ProviderProfile
from epcheck.conformance.records.target_facts import base_of
from epcheck.conformance.targets import expectation_file
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML
from epcheck.generators.claims import claims_of

SHIPPED = {"dml": DML, "cpu": CPU}
"""Targets of which everything is known without a runtime: name -> execution provider."""


@dataclass(frozen=True)
class ProfileOptions:
    """Whose profile, and where it is written. out: None writes none. config: None for `epcheck.toml` as it is found."""

    target: Annotated[str, Option("The target whose profile is written.", argument=True, metavar="TARGET")] = "dml"
    out: Annotated[Path | None, Option("The file of the profile.", metavar="FILE", folder=False)] = None
    config: Annotated[Path | None, Option("Use this epcheck.toml.")] = None


@dataclass(frozen=True)
class ReadProfileOptions:
    """Which profile is read. expect: where its exclusions are written as expectations; None writes none."""

    path: Annotated[Path, Option("A provider profile.", argument=True, metavar="FILE", folder=False)]
    expect: Annotated[
        Path | None, Option("Write the exclusions as a file for `epcheck run --expect`.", metavar="FILE", folder=False)
    ] = None


def provider_profile(options: ProfileOptions | None = None) -> ProviderProfile:
    """The profile of a target; it is written where `out` names a file.

    Raises TargetError when there is no such target, ProfileError when it is no execution provider's, and OSError.
    """
    options = options or ProfileOptions()
    found = shipped_profile(options.target) or _profile_of(options)
    if options.out:
        options.out.write_text(profile.dumps(found), encoding="ascii", newline="\n")
    return found


def read_profile(options: ReadProfileOptions) -> ProviderProfile:
    """The profile in a file: its `claims` and its `expectations`. Raises ProfileError when it is none, and OSError."""
    try:
        text = options.path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ProfileError(f"{options.path} is not UTF-8: {error.reason} at byte {error.start}") from None
    found = profile.loads(text, str(options.path))
    if options.expect:
        options.expect.write_text(expectations_toml(found.expectations), encoding="utf-8", newline="\n")
    return found


def shipped_profile(target: str) -> ProviderProfile | None:
    """The profile of a target that epcheck ships expectations for, in any release: `dml@1.20.1`; None for others."""
    name = base_of(target)
    provider = SHIPPED.get(name)
    if provider is None:
        return None
    return ProviderProfile(provider, target, claims_of(provider), expectation_file.load_shipped(name))


def profile_digest(target: str) -> str | None:
    """SHA-256 of the profile of a target that epcheck ships expectations for; None for others."""
    found = shipped_profile(target)
    return None if found is None else profile.digest(found)


def profile_text(found: ProviderProfile) -> str:
    """A profile as JSON, the same text for the same profile."""
    return profile.dumps(found)


def profile_schema() -> dict[str, Any]:
    """The JSON Schema of a profile."""
    return profile.schema()


def _profile_of(options: ProfileOptions) -> ProviderProfile:
    target = resolve(options.target, load_config(options.config))
    if target.provider is None:
        raise ProfileError(f"target '{options.target}' is no execution provider and has no profile")
    return ProviderProfile(target.provider, target.name, target.claims, target.expectations)
