"""What every request says of the sessions of a target."""

from __future__ import annotations

from typing import Any

from epcheck.conformance.targets.target import Target


def session_options(target: Target) -> dict[str, Any]:
    """Providers with their options, session options, and where output buffers are bound, as `protocol` has them."""
    return {
        "providers": [[target.provider, dict(target.options)]] if target.provider else [],
        "config": dict(target.config),
        "device": target.device,
        **target.request_defaults,
    }
