"""The picture and the terminal capture of README: `nox -s pictures` makes both from one run.

The run is of an old release of DirectML's provider, whose faults no shipped expectation covers. It needs the lab,
Chromium and, the first time, the network. The picture holds the verdict of its run as text, which a test compares.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PICTURE = ROOT / "docs/images/report.png"

COMMAND = "epcheck run --target dml@1.17.3 --op Trilu"
SIZE = (1180, 790)
"""Width and height of the picture in pixels."""

KEYWORD = b"Description"
"""The PNG keyword under which the picture holds the verdict."""

CAPTURE = re.compile(r"(?<=<!-- capture -->\n```text\n)(.*?)(?=```\n<!-- end of capture -->)", re.DOTALL)


def main() -> None:
    """Run the command; write the capture into README and the picture beside it."""
    with tempfile.TemporaryDirectory() as folder:
        output = run_command(Path(folder))
        (page,) = Path(folder).glob("epcheck-runs/*/report.html")
        take_picture(page)
    capture = f"$ {COMMAND}\n{summary(output)}"
    README.write_text(CAPTURE.sub(lambda _: capture, README.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_bytes(add_text(PICTURE.read_bytes(), verdict(capture)))


def run_command(folder: Path) -> str:
    """What the command prints. Its exit code must be 1: the report shows failures."""
    program = shutil.which("epcheck", path=str(Path(sys.executable).parent)) or "epcheck"
    environment = {**os.environ, "COLUMNS": "120"}
    words = [program, *COMMAND.split()[1:]]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 1:
        sys.exit(f"exit code {done.returncode}, not 1: {done.stderr}")
    return done.stdout


def summary(output: str) -> str:
    """The lines from the table of operators to the verdict."""
    lines = output.splitlines()
    first = next(index for index, line in enumerate(lines) if re.match(r"operator +cases", line))
    last = next(index for index, line in enumerate(lines) if line.startswith("Report: "))
    return "".join(f"{line.rstrip()}\n" for line in lines[first:last])


def verdict(capture: str) -> str:
    """The last line of a capture."""
    return capture.splitlines()[-1]


def take_picture(page: Path) -> None:
    """Write the top of the page as a PNG."""
    browser = shutil.which("chromium") or sys.exit("chromium is not installed")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}")
    subprocess.run([browser, *flags, f"--screenshot={PICTURE}", page.as_uri()], capture_output=True, check=True)


def add_text(png: bytes, text: str) -> bytes:
    """The PNG with a text chunk after its header, which is 33 bytes long."""
    body = b"tEXt" + KEYWORD + b"\0" + text.encode("latin-1")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:33] + chunk + png[33:]


def read_text(png: bytes) -> str:
    """The text that `add_text` added."""
    (length,) = struct.unpack(">I", png[33:37])
    return png[41 : 41 + length].removeprefix(KEYWORD + b"\0").decode("latin-1")


if __name__ == "__main__":
    main()
