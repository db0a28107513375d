"""What code in a library tells the runner: through stderr, of which a few short lines are kept."""

from __future__ import annotations

import base64
import os
import zlib

PART = 400


def tell(report: str) -> None:
    """Write a report to stderr, in one line and in short ones, and end the process."""
    text = base64.b64encode(zlib.compress(report.encode())).decode()
    parts = [f"REPORT:{at // PART:03}:{text[at : at + PART]}" for at in range(0, len(text), PART)]
    os.write(2, ("\n".join(parts) + "\n" + " ".join(parts) + "\n").encode())
    os._exit(3)
