"""A private apt: Debian's packages in a folder of ours, without root and without touching the machine's own.

apt verifies the archive's signed index, and with it every file; what `debian.json` pins is preferred and checked again.
A package of another version than the pinned one is vouched for by the signature alone, which has no date after which a
stable suite would be refused: what is older than tested is a warning.
The archive is the one that the machine's own apt uses, or the mirror that the user names.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import unquote

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout, hash_file
from epcheck.conformance.lab.packages import debian_version
from epcheck.conformance.lab.packages.pins import read
from epcheck.conformance.lab.process import Say, Watch, in_threads, run
from epcheck.conformance.records import atomic_file
from epcheck.conformance.start_process import find_program

_DEBIAN_SUITES = re.compile(
    r"(buster|bullseye|bookworm|trixie|forky|duke|sid|oldoldstable|oldstable|stable|testing|unstable)(-updates)?"
)
_UNPACK_S = 300  # the largest package takes 5
_SHORT_S = 2.0  # shorter waits for another thread's apt are not reported
_KEYRINGS = ("usr/share/keyrings/debian-archive-keyring.gpg", "usr/share/keyrings/debian-archive-keyring.pgp")


@dataclass(frozen=True)
class Source:
    """One archive of the machine's apt: where it is and what is taken from it."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]


@dataclass(frozen=True)
class Package:
    """One .deb as the archive offers it; size in bytes."""

    name: str
    version: str
    file: str
    size: int


def parse_one_line(text: str) -> list[Source]:
    """The archives of a `sources.list` (sources.list(5), one-line style)."""
    found = []
    for line in text.splitlines():
        words = re.sub(r"\[[^\]]*\]", " ", line.split("#")[0]).split()
        if len(words) >= 4 and words[0] == "deb":
            found.append(Source(words[1], (words[2],), tuple(words[3:])))
    return found


def parse_deb822(text: str) -> list[Source]:
    """The archives of a `*.sources` file (sources.list(5), deb822 style); disabled ones are left out."""
    found = []
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace():
                fields[key] = fields.get(key, "") + " " + line.strip()
            elif ":" in line:
                key, value = line.split(":", 1)
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        suites, components = (tuple(fields.get(k, "").split()) for k in ("suites", "components"))
        found += [Source(uri, suites, components) for uri in fields.get("uris", "").split()]
    return found


def machine_sources(etc: Path = Path("/etc/apt")) -> list[Source]:
    """All archives that the machine's apt is configured for."""
    found: list[Source] = []
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]:
        if path.is_file():
            found += parse_one_line(path.read_text(errors="replace"))
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        found += parse_deb822(path.read_text(errors="replace"))
    return found


def find_mirror(sources: Iterable[Source]) -> str | None:
    """The Debian archive among the machine's: one that gives the main component of a suite of Debian."""
    for source in sources:
        if "main" in source.components and any(_DEBIAN_SUITES.fullmatch(suite) for suite in source.suites):
            return source.uri
    return None


def missing() -> str | None:
    """One sentence when this machine cannot fetch Debian packages, else None."""
    absent = [tool for tool in ("apt-get", "dpkg-deb") if not find_program(tool)]
    if absent:
        return (
            f"this machine has no {' and no '.join(absent)}: install Wine 10 or later and a Vulkan driver with its own "
            "package manager and use --system-wine"
        )
    return None


class Archive:
    """The private apt of one lab. Several threads may use it: one apt runs at a time.

    say: what each action reports through. keep_open: the descriptor of the install's lock, which programs started here
    hold as well. Raises LabError, from the constructor too, when no archive or no keyring can be found.
    """

    def __init__(
        self, layout: Layout, mirror: str | None, say: Say, keep_open: int | None = None, suite: str | None = None
    ) -> None:
        """suite: of Debian; None for the one that a lab is tested with, whose versions are preferred."""
        if reason := missing():
            raise LabError(reason)
        found = mirror or find_mirror(machine_sources())
        if not found:
            raise LabError("apt on this machine knows no Debian archive; name one with --mirror URL")
        self.say, self._layout, self._keep_open = say, layout, keep_open
        self._apt = layout.apt
        for part in ("lists/partial", "archives/partial", "nothing/partial"):
            (self._apt / part).mkdir(parents=True, exist_ok=True)
        (self._apt / "status").write_text("")
        line = f"[signed-by={self._keyring()}] {found} {suite or read('debian.json')['suite']} main\n"
        atomic_file.write_text(self._apt / "sources.list", f"deb {line}deb-src {line}")
        pins = [f"Package: {n}\nPin: version {p['version']}\nPin-Priority: 1001\n"
                for n, p in ({} if suite else _manifest()).items()]  # fmt: skip
        atomic_file.write_text(self._apt / "preferences", "\n".join(pins))
        atomic_file.write_text(self._apt / "apt.conf", self._configuration())
        self._busy, self._updated = threading.RLock(), threading.Event()

    def heard_by(self, say: Say) -> Self:
        """The same archive, whose actions report through `say`."""
        view = copy.copy(self)
        view.say = say
        return view

    def _configuration(self) -> str:
        apt = self._apt
        # Read after the machine's own configuration (-c), so that its proxies stay and its habits do not.
        return f"""\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
APT::Architecture "amd64"; APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false"; APT::Install-Suggests "false";
APT::Sandbox::User ""; APT::Get::AllowUnauthenticated "false";
APT::Keep-Downloaded-Packages "true"; Acquire::Languages "none"; Acquire::Retries "3"; Debug::NoLocking "true";
Dir::Etc::SourceList "{apt}/sources.list"; Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "{apt}/preferences"; Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{apt}"; Dir::State::Lists "{apt}/lists"; Dir::State::status "{apt}/status";
Dir::Cache "{apt}"; Dir::Cache::Archives "{apt}/archives";
"""

    def _keyring(self) -> Path:
        for keyring in _KEYRINGS:
            if (path := Path("/") / keyring).is_file():
                return path
        # Another distribution of the family: its own apt vouches for the package that holds Debian's keys.
        unpacked = self._apt / "keyring"
        try:
            self._apt.mkdir(parents=True, exist_ok=True)
            run(["apt-get", "-q", "download", "debian-archive-keyring"], what="fetching Debian's keys", cwd=self._apt)
            for deb in self._apt.glob("debian-archive-keyring_*.deb"):
                run(["dpkg-deb", "-x", deb, unpacked], what="unpacking Debian's keys")
        except LabError:
            pass
        for keyring in _KEYRINGS:
            if (path := unpacked / keyring).is_file():
                return path
        raise LabError("Debian's keyring is missing; install the package debian-archive-keyring")

    def _run(
        self, *arguments: str, what: str, cwd: Path | None = None, watch: Path | None = None, total: int | None = None
    ) -> str:
        with self._alone():
            return run(
                ["apt-get", "-q", "-y", "-c", self._apt / "apt.conf", *arguments],
                what=what,
                env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
                cwd=cwd,
                watch=Watch(self.say, watch, total),
                keep_open=self._keep_open,
            )

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads from the folders of apt, which locks nothing here (`Debug::NoLocking`)."""
        if not self._busy.acquire(timeout=_SHORT_S):
            self.say("waiting for the packages of another step", None, None)
            self._busy.acquire()
        try:
            yield
        finally:
            self._busy.release()

    def update(self) -> None:
        """Fetch the archive's signed index, once for each install."""
        with self._alone():
            if not self._updated.is_set():
                what = "reading the package index"
                self._run("-o", "APT::Update::Error-Mode=any", "update", what=what, watch=self._apt / "lists")
                self._updated.set()

    def resolve(self, names: Sequence[str]) -> list[Package]:
        """The packages and all they depend on, as the archive offers them now."""
        self.update()
        # apt leaves out what it has downloaded before, so it is shown an empty folder.
        nothing = f"Dir::Cache::Archives={self._apt}/nothing"
        return parse_uris(self._run("-q", "-o", nothing, "install", "--print-uris", *names, what="resolving packages"))

    def fetch(self, names: Sequence[str]) -> list[Package]:
        """Download packages with their dependencies, and check them; what an earlier try fetched is kept."""
        packages = self.resolve(names)
        wanted = [p for p in packages if not (self._apt / "archives" / p.file).is_file()]
        if wanted:
            self._run(
                "install",
                "--download-only",
                *names,
                what=f"downloading {len(wanted)} packages",
                watch=self._apt / "archives",
                total=sum(p.size for p in wanted),
            )
        self.say(f"checking {len(packages)} packages", None, None)
        self._check(packages, self._apt / "archives")
        return packages

    def fetch_only(self, names: Sequence[str]) -> list[Package]:
        """Download packages without their dependencies, and check them."""
        self.update()
        archives = self._apt / "archives"
        packages = parse_uris(self._run("download", "--print-uris", *names, what="resolving packages", cwd=self._apt))
        self._run("download", *names, what="downloading packages", cwd=archives, watch=archives,
                  total=sum(p.size for p in packages))  # fmt: skip
        self._check(packages, archives)
        return packages

    def fetch_source(self, name: str) -> tuple[Path, str]:
        """Download the upstream source of a package; returns the .orig tarball and the package's version."""
        self.update()
        archives = self._apt / "archives"
        # apt names only the files that the current folder lacks, so this one has none of them.
        listed = self._run("source", "--print-uris", name, what="resolving the source package", cwd=self._apt)
        files = re.findall(r"^'\S+' (\S+) (\d+) ", listed, re.MULTILINE)
        version = next((m[1] for f, _ in files if (m := re.fullmatch(rf"{re.escape(name)}_(.+)\.dsc", f))), "?")
        self._run("source", "--download-only", name, what="downloading the source package", cwd=archives,
                  watch=archives, total=sum(int(n) for f, n in files if not (archives / f).is_file()))  # fmt: skip
        tarball = next((archives / f for f, _ in files if ".orig.tar." in f), None)
        if tarball is None:
            raise LabError(f"the archive's source package of {name} has no .orig tarball; name another --mirror")
        pinned = read("debian.json")["sources"].get(tarball.name)
        if pinned and hash_file(tarball) != pinned:
            tarball.unlink()
            raise LabError(f"{tarball.name} is not the file epcheck was tested with; name another --mirror")
        return tarball, version

    def _check(self, packages: Sequence[Package], folder: Path) -> None:
        found: dict[str, dict[str, str]] = {}

        def check_one(package: Package) -> None:
            digest = hash_file(folder / package.file)
            try:
                check(package, digest)
            except LabError:
                (folder / package.file).unlink()  # the next try fetches it anew
                raise
            found[package.name] = {"version": package.version, "sha256": digest}

        for _ in in_threads(check_one, packages):
            pass
        warn_of_older(packages)
        with self._busy:
            path = self._apt / "packages.json"
            record = json.loads(path.read_text()) if path.is_file() else {}
            atomic_file.write_text(path, json.dumps(dict(sorted((record | found).items())), indent=1) + "\n")

    def unpack(self, packages: Sequence[Package], target: Path) -> None:
        """Unpack packages over one another, as dpkg would, without running any of their scripts."""
        target.mkdir(parents=True, exist_ok=True)
        total, done = sum(p.size for p in packages), 0

        def unpack(package: Package) -> None:
            deb, what = self._apt / "archives" / package.file, f"unpacking {package.file}"
            run(["dpkg-deb", "-x", deb, target], what=what, keep_open=self._keep_open, timeout=_UNPACK_S)

        # Sizes differ by a factor of 100,000: the largest first keeps all cores at work to the end.
        for package in in_threads(unpack, sorted(packages, key=lambda p: -p.size)):
            done += package.size
            self.say(f"unpacking {len(packages)} packages", done, total)


def forget(layout: Layout) -> None:
    """Delete what was downloaded; the record of it stays."""
    for name in ("archives", "lists"):
        shutil.rmtree(layout.apt / name, ignore_errors=True)
    for cache in layout.apt.glob("*.bin"):
        cache.unlink()


def parse_uris(printed: str) -> list[Package]:
    """The packages that `apt-get --print-uris` names: one line each, `'URL' name_version_arch.deb size hash`."""
    found = []
    for file, size in re.findall(r"^'\S+' (\S+\.deb) (\d+)", printed, re.MULTILINE):
        name, version, _ = unquote(file).split("_", 2)
        found.append(Package(name, version, file, int(size)))
    return found


def check(package: Package, sha256: str, manifest: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Raises LabError when a package of the pinned version is not the pinned file."""
    pin = (_manifest() if manifest is None else manifest).get(package.name)
    if pin and pin["version"] == package.version and pin["sha256"] != sha256:
        raise LabError(
            f"{package.file} has SHA-256 {sha256}, but epcheck was tested with {pin['sha256']}; name another --mirror"
        )


class OldPackagesWarning(UserWarning):
    """The archive serves versions that are older than those that were tested."""


OLDER, NEWER, UNKNOWN = "OLDER than tested", "newer than tested", "not tested"


def describe_other_versions(
    packages: Iterable[Package], manifest: Mapping[str, Mapping[str, str]] | None = None
) -> str | None:
    """One line that tells which packages are older than those that were tested, which are newer, and which were not
    tested at all; None when all are as tested."""
    packages = list(packages)
    found = _against_tested(packages, manifest)
    kinds = [f"{kind} {len(names)} of {len(packages)} packages: {_some(names)}" for kind, names in found.items()]
    return "; ".join(kinds) or None


def warn_of_older(packages: Iterable[Package], manifest: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Issue an OldPackagesWarning where the archive serves older versions than those that were tested. Its signature is
    as good for what it had last year: whoever stands between can serve that, with the faults that are mended since."""
    if old := _against_tested(packages, manifest).get(OLDER):
        warnings.warn(
            f"the archive serves {len(old)} packages that are older than those that epcheck was tested with: "
            f"{_some(old)}; it is behind, or somebody serves an old one: name another --mirror",
            OldPackagesWarning,
            stacklevel=2,
        )


def _against_tested(
    packages: Iterable[Package], manifest: Mapping[str, Mapping[str, str]] | None
) -> dict[str, list[str]]:
    """OLDER, NEWER and UNKNOWN, as far as there are such -> the packages that are so, in words."""
    pins = _manifest() if manifest is None else manifest
    found: dict[str, list[str]] = {}
    for package in packages:
        tested = pins.get(package.name, {}).get("version", "")
        if not tested:
            found.setdefault(UNKNOWN, []).append(f"{package.name} {package.version}")
        elif package.version != tested:
            is_older = debian_version.order(package.version) < debian_version.order(tested)
            words = f"{package.name} {package.version} (tested: {tested})"
            found.setdefault(OLDER if is_older else NEWER, []).append(words)
    return dict(sorted(found.items()))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _manifest() -> dict[str, dict[str, str]]:
    return {**read("debian.json")["packages"], **read("glvnd.json")["packages"]}
