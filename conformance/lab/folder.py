"""Where everything of a lab lies, and what makes a folder a lab."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.records import atomic_file

FORMAT = 1  # of lab.json; a lab of another format is installed anew


def default_folder() -> Path:
    """The lab that is meant when none is named: $EPCHECK_LAB, or `lab` in epcheck's folder of the user's cache."""
    if named := os.environ.get("EPCHECK_LAB"):
        return Path(named).expanduser().absolute()
    return Path(platformdirs.user_cache_dir("epcheck")) / "lab"


@dataclass(frozen=True)
class Config:
    """What was chosen when the lab was installed.

    wine_loader, wine_server: the machine's own Wine, or None for the private one.
    vulkan: the Vulkan driver's ICD file (JSON), or None for the private software driver.
    """

    wine_loader: str | None = None
    wine_server: str | None = None
    vulkan: str | None = None


@dataclass(frozen=True)
class Layout:
    """Every path in a lab. A path may not exist yet; nothing here touches the disk except `config` and `mark`."""

    folder: Path

    @classmethod
    def of(cls, folder: Path | None) -> Layout:
        return cls((folder or default_folder()).expanduser().absolute())

    @property
    def marker(self) -> Path:
        return self.folder / "lab.json"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def stamps(self) -> Path:
        return self.folder / "steps"

    @property
    def scratch(self) -> Path:
        """Half-done work. Whatever lies here may be deleted while no install runs."""
        return self.folder / "scratch"

    @property
    def apt(self) -> Path:
        return self.folder / "apt"

    @property
    def tools(self) -> Path:
        return self.folder / "tools"

    @property
    def root(self) -> Path:
        """The unpacked Debian packages: Wine and the software Vulkan driver."""
        return self.folder / "root"

    @property
    def libraries(self) -> Path:
        return self.root / "usr/lib/x86_64-linux-gnu"

    @property
    def layers(self) -> Path:
        """The folder that Vulkan's loader searches for the layer that stands in for a window system."""
        return self.folder / "vulkan"

    @property
    def prefix(self) -> Path:
        return self.folder / "prefix"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def python(self) -> Path:
        """Windows Python: `python.exe` and its standard library."""
        return self.folder / "python"

    @property
    def site_packages(self) -> Path:
        return self.python / "Lib/site-packages"

    @property
    def runtimes(self) -> Path:
        return self.folder / "runtimes"

    @property
    def dxil(self) -> Path:
        """vkd3d rebuilt with its shader-model-6 front end; loaded instead of Wine's own."""
        return self.folder / "dxil/vkd3d_dxil.dll"

    def exists(self) -> bool:
        return self.marker.is_file()

    def config(self) -> Config:
        """Raises LabError when this folder is not a lab."""
        try:
            read = json.loads(self.marker.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise LabError(f"{self.folder} is not a lab; run: epcheck lab install") from None
        except OSError as error:
            raise LabError(f"{self.marker} cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            raise LabError(f"{self.marker} is damaged; run: epcheck lab remove, then install") from None
        if not isinstance(read, dict) or read.get("epcheck_lab") != FORMAT:
            raise LabError(f"{self.marker} is of another version of epcheck; run: epcheck lab remove, then install")
        chosen = [read.get(name) for name in Config.__dataclass_fields__]
        if any(not isinstance(value, str | None) for value in chosen):
            raise LabError(f"{self.marker} is damaged; run: epcheck lab remove, then install")
        return Config(*chosen)

    def refuse_foreign(self) -> None:
        """Raises LabError for a folder that holds something else already: a lab is removed as a whole, one day."""
        if self.exists() or not self.folder.exists():
            return
        if not self.folder.is_dir() or any(path not in (self.lock, self.scratch) for path in self.folder.iterdir()):
            raise LabError(f"{self.folder} holds something else and is not a lab; name an empty or new folder")

    def mark(self, config: Config) -> None:
        """Make the folder a lab, or keep it one."""
        atomic_file.write_text(self.marker, json.dumps({"epcheck_lab": FORMAT, **asdict(config)}, indent=1) + "\n")


def hash_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def size(path: Path) -> int:
    """Bytes in all files below `path`; links count as themselves, what vanishes meanwhile as nothing."""
    total, pending = 0, [str(path)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_size
                    except FileNotFoundError:
                        continue
        except (FileNotFoundError, NotADirectoryError):
            continue
    return total
