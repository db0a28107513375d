"""The session that a worker keeps, so that its provider keeps what all sessions share.

A provider that finds no other session makes its device, its compiled programs and its libraries anew for each one and
takes them down with it. A session of one node takes WebGPU 110 ms then and 0.7 ms beside another one, QNN 100 ms and
20 ms, OpenVINO 40 ms and 25 ms (medians on two cores). Programs with sessions of more than one node, or with more than
one session, use a provider in the second way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ALONE = ("CPUExecutionProvider", "DmlExecutionProvider")
"""Providers of which no session is kept: CPU's sessions share nothing, and those of DirectML share the device of the
process already."""


class HeldSession:
    """At most one session, of the canary's model."""

    def __init__(self) -> None:
        self.session: Any = None

    def hold(self, provider: str, session: Any) -> None:
        """Keep the session, unless that makes no difference to its provider."""
        if provider not in ALONE:
            self.session = session

    def check(self) -> None:
        """After a session that failed: let go of the one that is kept unless it still works. What all share may have
        been lost with the other, as a device is, and the next session makes it anew."""
        if self.session is None:
            return
        ones = np.ones((2, 2), np.float32)
        try:
            (total,) = self.session.run(None, {"a": ones, "b": ones})
            works = bool((total == 2).all())
        except Exception:
            works = False
        if not works:
            self.session = None
