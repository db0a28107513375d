"""What in a lab names its folder or its user, rewritten for where it lies now."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import asdict, replace

from epcheck.conformance.lab import wine
from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Config, Layout
from epcheck.conformance.lab.packages import elf
from epcheck.conformance.lab.packing.manifest import Manifest
from epcheck.conformance.lab.plan import plan
from epcheck.conformance.lab.steps import digests, stamp_path
from epcheck.conformance.records import atomic_file

_LIBRARIES = "$ORIGIN/../x86_64-linux-gnu"  # seen from usr/lib/wine


def settle(layout: Layout, listed: Manifest) -> None:
    """Make files that were unpacked into a lab's folder work there, and stamp its steps as done. Raises LabError."""
    programs = layout.root / "usr/lib/wine"
    for name in ("wine64", "wineserver64"):
        try:
            elf.search_path_from_itself(programs / name, _LIBRARIES)
            elf.set_interpreter(programs / name, layout.libraries / "ld-linux-x86-64.so.2")
        except (ValueError, FileNotFoundError) as error:
            raise LabError(f"the packed lab cannot be used: {error}") from None
    layout.home.mkdir(exist_ok=True)
    devices = layout.prefix / "dosdevices"
    devices.mkdir(exist_ok=True)
    for name, target in (("c:", "../drive_c"), ("z:", "/")):
        (devices / name).unlink(missing_ok=True)
        (devices / name).symlink_to(target)
    _rename_user(layout, listed.user)
    wine.install_layer(layout, Config())
    _stamp(layout, listed)


def _rename_user(layout: Layout, packed: str) -> None:
    """Give the Wine prefix to the user of this process: Wine looks for a folder of that name."""
    name = _user_name()
    users = layout.prefix / "drive_c/users"
    if name is None or name == packed or not (users / packed).is_dir():
        return
    (users / packed).rename(users / name)
    old = re.compile(rf"(\\\\users\\\\){re.escape(packed)}(?=[\\\"])")
    for registry in layout.prefix.glob("*.reg"):
        text = registry.read_text(encoding="utf-8", errors="surrogateescape")
        changed = old.sub(lambda match: match[1] + name, text)
        registry.write_text(changed, encoding="utf-8", errors="surrogateescape")


def _user_name() -> str | None:
    """What Wine calls the user of this process; None for a user that the system does not know."""
    if sys.platform == "win32":
        return None
    import pwd  # which Windows does not have

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def _stamp(layout: Layout, listed: Manifest) -> None:
    """Say of each step what it was made from, as an install in this folder would."""
    inputs = digests(plan(layout, Config()))
    for name, kept in listed.stamps.items():
        stamp = replace(kept, inputs=inputs.get(name, kept.inputs))
        atomic_file.write_text(stamp_path(layout, name), json.dumps(asdict(stamp), indent=1) + "\n")
