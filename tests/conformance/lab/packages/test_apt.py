import itertools
import os
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from epcheck.conformance.lab import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages import apt, debian_version
from epcheck.conformance.lab.packages.apt import Package, Source

ONE_LINE = """\
# deb http://commented.example/archive trixie main
deb [arch=amd64 signed-by=/etc/keys/x.gpg] http://tools.example/apt stable-tools main
deb-src http://mirror.example/archive bookworm main
deb http://mirror.example/updates bookworm-security main
deb http://mirror.example/archive bookworm main contrib # ours
"""

DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://one.example/archive http://two.example/archive
Suites: bookworm
 bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://off.example/archive
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://sources.example/archive
Suites: bookworm
Components: main
"""

URIS = """\
'http://m.example/pool/libc6_2.41-12+deb13u4_amd64.deb' libc6_2.41-12+deb13u4_amd64.deb 2846580 MD5Sum:00
'http://m.example/pool/libx11-6_1.8.12-1_amd64.deb' libx11-6_2%3a1.8.12-1_amd64.deb 815292 SHA256:11
Reading package lists...
"""

MANIFEST = {"wine64": {"version": "10.0", "sha256": "aa"}, "libc6": {"version": "2.41", "sha256": "bb"}}


def test_one_line_sources_skip_comments_options_and_source_packages() -> None:
    assert apt.parse_one_line(ONE_LINE) == [
        Source("http://tools.example/apt", ("stable-tools",), ("main",)),
        Source("http://mirror.example/updates", ("bookworm-security",), ("main",)),
        Source("http://mirror.example/archive", ("bookworm",), ("main", "contrib")),
    ]


def test_deb822_sources_read_folded_fields_and_skip_what_is_disabled_or_source_only() -> None:
    suites = ("bookworm", "bookworm-updates")
    assert apt.parse_deb822(DEB822) == [
        Source("http://one.example/archive", suites, ("main",)),
        Source("http://two.example/archive", suites, ("main",)),
    ]


def test_the_mirror_is_the_archive_of_a_debian_suite_and_not_its_security_archive() -> None:
    assert apt.find_mirror(apt.parse_one_line(ONE_LINE)) == "http://mirror.example/archive"


def test_another_distribution_has_no_debian_mirror() -> None:
    assert apt.find_mirror([Source("http://archive.example/ubuntu", ("noble",), ("main", "universe"))]) is None


def test_all_source_files_of_the_machine_are_read(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.example/archive sid main\n")
    (tmp_path / "sources.list.d/b.list").write_text("deb http://b.example/archive sid main\n")
    (tmp_path / "sources.list.d/c.sources").write_text(
        "Types: deb\nURIs: http://c.example/archive\nSuites: sid\nComponents: main\n"
    )
    assert [s.uri[7] for s in apt.machine_sources(tmp_path)] == ["a", "b", "c"]
    assert apt.machine_sources(tmp_path / "absent") == []


def test_printed_uris_give_name_version_with_epoch_and_size() -> None:
    assert apt.parse_uris(URIS) == [
        Package("libc6", "2.41-12+deb13u4", "libc6_2.41-12+deb13u4_amd64.deb", 2846580),
        Package("libx11-6", "2:1.8.12-1", "libx11-6_2%3a1.8.12-1_amd64.deb", 815292),
    ]


def test_a_pinned_version_with_another_hash_is_refused() -> None:
    with pytest.raises(LabError, match=r"wine64\.deb has SHA-256 cc, but epcheck was tested with aa"):
        apt.check(Package("wine64", "10.0", "wine64.deb", 1), "cc", MANIFEST)


def test_the_pinned_file_another_version_and_an_unknown_package_are_accepted() -> None:
    apt.check(Package("wine64", "10.0", "wine64.deb", 1), "aa", MANIFEST)
    apt.check(Package("wine64", "10.1", "wine64.deb", 1), "cc", MANIFEST)
    apt.check(Package("new", "1", "new.deb", 1), "cc", MANIFEST)


def test_newer_older_and_unknown_packages_are_told_apart_in_one_line() -> None:
    as_tested, newer = Package("libc6", "2.41", "f", 1), Package("wine64", "10.1", "f", 1)
    older, unknown = Package("wine64", "10.0~rc5", "f", 1), Package("new", "1", "f", 1)
    assert apt.describe_other_versions([as_tested], MANIFEST) is None
    line = "newer than tested 1 of 2 packages: wine64 10.1 (tested: 10.0)"
    assert apt.describe_other_versions([as_tested, newer], MANIFEST) == line
    assert apt.describe_other_versions([as_tested, older, unknown], MANIFEST) == (
        "OLDER than tested 1 of 3 packages: wine64 10.0~rc5 (tested: 10.0); not tested 1 of 3 packages: new 1"
    )


def test_older_packages_than_tested_are_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apt.warn_of_older([Package("wine64", "10.1", "f", 1), Package("new", "1", "f", 1)], MANIFEST)
    with pytest.warns(apt.OldPackagesWarning, match=r"tested with: wine64 9\.22 \(tested: 10\.0\); it is"):
        apt.warn_of_older([Package("wine64", "9.22", "f", 1)], MANIFEST)


VERSIONS = ("~~", "~~a", "~", "0", "1.0~rc1-1", "1.0-1", "1.0-1+b1", "1.0-1+deb13u1", "1.0-2", "1.0a-1", "1.0+x-1",
            "1.0.1-1", "1.9-1", "1.10-1", "2:0.1-1", "10:0.1-1")  # fmt: skip
"""As deb-version(7) orders them."""


@pytest.mark.parametrize(("older", "newer"), tuple(itertools.pairwise(VERSIONS)))
def test_versions_are_ordered_as_debian_does(older: str, newer: str) -> None:
    assert debian_version.order(older) < debian_version.order(newer)
    dpkg = shutil.which("dpkg")
    if dpkg and older[0].isdigit():
        subprocess.run([dpkg, "--compare-versions", older, "lt", newer], check=True)
    assert debian_version.order("1.00-01") == debian_version.order("1.0-1")


def test_a_machine_without_apt_is_told_of_its_own_wine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    reason = apt.missing()
    assert reason is not None
    assert reason.startswith("this machine has no apt-get and no dpkg-deb: ")
    assert "--system-wine" in reason


@pytest.mark.skipif(sys.platform == "win32", reason="a program is a shell script")
def test_threads_that_share_an_archive_run_one_apt_at_a_time_and_fetch_the_index_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log, lab = tmp_path / "log", tmp_path / "lab"
    for name in ("apt-get", "dpkg-deb"):
        program = tmp_path / name
        uri = "'http://m.example/p/libc6_2_amd64.deb' libc6_2_amd64.deb 5 SHA256:11"
        program.write_text(f'#!/bin/sh\necho "begin $*" >> {log}\nsleep 0.5\necho "{uri}"\necho end >> {log}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(apt.Archive, "_keyring", lambda _self: Path("/keys.gpg"))
    monkeypatch.setattr(apt, "_SHORT_S", 0.1)
    archive = apt.Archive(Layout(lab), "http://m.example/archive", lambda *_: None)
    heard: dict[str, list[str]] = {"wine": [], "dxil": []}

    def resolve(step: str) -> list[Package]:
        return archive.heard_by(lambda message, _done, _total: heard[step].append(message)).resolve([step])

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(resolve, heard)] == [[Package("libc6", "2", "libc6_2_amd64.deb", 5)]] * 2
    lines = log.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["begin", "end"] * 3
    assert [line.split()[-1] for line in lines[0::2]] in (["update", "wine", "dxil"], ["update", "dxil", "wine"])
    assert "waiting for the packages of another step" in heard["wine"] + heard["dxil"]
    assert all("resolving packages" in messages for messages in heard.values())
