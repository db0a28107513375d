"""A certificate as a folder that anybody checks: what it is made of, the page, and a manifest with SHA-256 of each.

    run.json, journal.jsonl   the run
    contract.json             what the workers observed, and the registered kernels
    certificate.json          what the certificate says, made of these three
    certificate.html          the same as a page
    manifest.json             size and SHA-256 of each file, of the libraries, and of the suite's code

A folder is a stranger's: nothing of it is imported, executed or unpickled, the names of its files are those above
whatever it says, links are not followed, and sizes are looked at before anything is read. The digests say that the
files belong together and are as they were made; that their maker ran what the journal tells, nobody can see. Who doubts
it runs the suite again and compares.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.contract import Contract, Library, Mustpass
from epcheck.conformance.records.error import EpcheckError
from epcheck.conformance.records.run import utc_now
from epcheck.reports.certificate.certificate import NO_LEVEL, SCHEMA, Certificate, make_certificate
from epcheck.reports.certificate.page import write_page
from epcheck.reports.runs.run_folder import JOURNAL, RUN, StoreError, read_run, replacing
from epcheck.reports.text import visible

CONTRACT, CERTIFICATE, PAGE, MANIFEST = "contract.json", "certificate.json", "certificate.html", "manifest.json"

FILES: Mapping[str, int] = {
    RUN: 16 << 20,
    JOURNAL: 4 << 30,
    CONTRACT: 64 << 20,
    CERTIFICATE: 64 << 20,
    PAGE: 64 << 20,
}
"""The files of a certificate but for the manifest -> how many bytes each has at most."""

MOST_OF_MANIFEST = 1 << 20
"""Bytes."""

T = TypeVar("T")


class CertificateError(EpcheckError):
    """A folder is no certificate, or is damaged. Its text is one sentence: which file, and what is wrong."""


@dataclass(frozen=True)
class FileDigest:
    """Of one file: its size in bytes, and SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What signs a certificate. made: when. suite: SHA-256 of the code that made it. libraries: what the sessions ran
    on. files: name -> digest, of FILES."""

    made: str
    epcheck: str
    suite: str
    libraries: tuple[Library, ...]
    files: Mapping[str, FileDigest]
    schema: int = field(default=SCHEMA)


@dataclass(frozen=True)
class Checked:
    """A certificate that was read. signature: SHA-256 of the manifest. doubts: sentences on what it says and its
    records do not. notes: what could not be compared."""

    folder: Path
    certificate: Certificate
    manifest: Manifest
    signature: str
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether it says what its records show, and has a level."""
        return not self.doubts and self.certificate.level != NO_LEVEL


def write_certificate(folder: Path, run: Path, contract: Contract, lists: Sequence[Mustpass], suite: str) -> Checked:
    """Make the folder of a certificate, in place of one that it holds already.

    run: the folder of a finished run with one candidate. Raises StoreError where the run cannot be read or a file
    cannot be written, and CertificateError where the folder holds something else.
    """
    refuse_other_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in (RUN, JOURNAL):
            shutil.copyfile(run / name, folder / name)
        _write_json(folder / CONTRACT, contract)
        certificate = make_certificate(folder, contract, lists, suite)
        _write_json(folder / CERTIFICATE, certificate)
        with replacing(folder / PAGE) as file:
            write_page(file, certificate)
        digests = {name: _digest(folder, name, most) for name, most in FILES.items()}
        made = certificate.versions.get("epcheck", "")
        _write_json(folder / MANIFEST, Manifest(utc_now(), made, suite, contract.libraries, digests))
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot write ({error.strerror or error})") from error
    manifest, signature = _read_manifest(folder)
    return Checked(folder, certificate, manifest, signature)


def check_run(run: Path, target: str) -> None:
    """Refuse a folder that holds no run of the target alone. Raises StoreError."""
    found = read_run(run)
    if found.candidates != (target,):
        raise StoreError(f"{run}: is a run of {', '.join(found.candidates) or 'nothing'}, not of {target} alone")


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but a certificate. Raises CertificateError."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CertificateError(f"{folder}: is a file; name a folder for the certificate")
    if others := sorted({entry.name for entry in folder.iterdir()} - {*FILES, MANIFEST}):
        raise CertificateError(f"{folder}: holds {others[0]!r}, which is no part of a certificate; name another folder")


def check_certificate(folder: Path, lists: Sequence[Mustpass], epcheck: str, suite: str) -> Checked:
    """Read a stranger's certificate, compare digests, and make it again of its records.

    lists, epcheck, suite: those of this epcheck. Raises CertificateError where a file is missing, damaged or too much.
    """
    manifest, signature = _read_manifest(folder)
    for name, most in FILES.items():
        found = _digest(folder, name, most)
        if found != manifest.files[name]:
            raise CertificateError(f"{folder / name}: has not the size and SHA-256 that {MANIFEST} says")
    contract = _read(folder / CONTRACT, Contract)
    stated = _read(folder / CERTIFICATE, Certificate)
    try:
        made = make_certificate(folder, contract, lists, manifest.suite)
    except (StoreError, ValueError, ArithmeticError, RecursionError) as error:
        raise CertificateError(visible(f"{folder}: cannot be read again: {error}")) from error
    doubts = list(_compare(folder, stated, made, manifest, contract))
    notes = []
    if manifest.epcheck != epcheck:
        notes.append(
            f"It was made by epcheck {manifest.epcheck}; this is {epcheck}, and what differs may be due to that."
        )
    elif manifest.suite != suite:
        notes.append(f"The code of epcheck {epcheck} that made it is not the one that is installed here.")
    return Checked(folder, made, manifest, signature, tuple(map(visible, doubts)), tuple(map(visible, notes)))


def _compare(
    folder: Path, stated: Certificate, made: Certificate, manifest: Manifest, contract: Contract
) -> Iterator[str]:
    """What the folder says and its records do not, in sentences."""
    if _text(stated) != _text(made):
        different = [
            name for name, value in typed_json.to_json(made).items() if typed_json.to_json(stated).get(name) != value
        ]
        levels = f": {stated.level!r} where they show {made.level!r}" if stated.level != made.level else ""
        yield f"{CERTIFICATE} says something else than the records{levels} ({', '.join(different) or 'other fields'})."
    if _render(made) != (folder / PAGE).read_bytes():
        yield f"{PAGE} is not the page that this epcheck makes of the records."
    if manifest.libraries != contract.libraries:
        yield f"{MANIFEST} names other libraries than {CONTRACT}."
    if manifest.epcheck != made.versions.get("epcheck", ""):
        yield f"{MANIFEST} names another release of epcheck than {RUN}."


def _render(certificate: Certificate) -> bytes:
    file = io.BytesIO()
    write_page(file, certificate)
    return file.getvalue()


def _read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest, and its SHA-256. Raises CertificateError."""
    try:
        names = {entry.name for entry in os.scandir(folder)}
    except OSError as error:
        raise CertificateError(f"{folder}: cannot be read ({error.strerror or error})") from None
    if MANIFEST not in names:
        raise CertificateError(f"{folder}: holds no {MANIFEST}; name a folder that epcheck certify has made")
    for name in sorted({*FILES} - names):
        raise CertificateError(f"{folder}: {name} is missing")
    for name in sorted(names - {*FILES, MANIFEST}):
        raise CertificateError(visible(f"{folder}: holds {name!r}, which no manifest signs"))
    signed = _digest(folder, MANIFEST, MOST_OF_MANIFEST)
    manifest = _read(folder / MANIFEST, Manifest)
    if manifest.schema > SCHEMA:
        raise CertificateError(
            f"{folder / MANIFEST}: schema {manifest.schema} is newer than this epcheck reads ({SCHEMA})"
        )
    if manifest.files.keys() != FILES.keys():
        raise CertificateError(f"{folder / MANIFEST}: does not sign {', '.join(FILES)}, and these alone")
    return manifest, signed.sha256


def _digest(folder: Path, name: str, most: int) -> FileDigest:
    """Size and SHA-256 of a file, which is no link and no device. name: of FILES. Raises CertificateError."""
    path = folder / name
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CertificateError(f"{path}: is no ordinary file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise CertificateError(f"{path}: has {size:,} bytes; {most:,} are read at most")
            digest = hashlib.file_digest(file, "sha256")
    except OSError as error:
        raise CertificateError(f"{path}: cannot be read ({error.strerror or error})") from None
    return FileDigest(size, digest.hexdigest())


def _read(path: Path, kind: type[T]) -> T:
    """What a file of JSON stands for. Raises CertificateError."""
    try:
        return typed_json.loads(kind, path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CertificateError(visible(f"{path}: cannot be read: {error}")) from None


def _text(certificate: Certificate) -> str:
    return strict_json.dumps(typed_json.to_json(certificate))


def _write_json(path: Path, value: object) -> None:
    with replacing(path) as file:
        file.write(json.dumps(strict_json.plain(typed_json.to_json(value)), indent=1).encode("ascii") + b"\n")
