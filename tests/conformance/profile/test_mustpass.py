"""The lists of cases that certificates are about."""

from __future__ import annotations

import tomllib
from importlib.metadata import version

import msgspec

from epcheck.conformance.profile import mustpass
from epcheck.conformance.records.contract import Mustpass
from tests.whole_suite import whole_suite


def test_the_lists_of_this_release_are_those_of_the_suite() -> None:
    known = [each for each in mustpass.load_mustpass() if each.suite == version("epcheck")]
    made = mustpass.make_mustpass(whole_suite(), version("epcheck"), version("onnx"))
    how = "if ids changed deliberately, run `nox -s case_ids` and commit mustpass.toml"
    assert [(each.name, each.cases, each.digest) for each in known] == [(m.name, m.cases, m.digest) for m in made], how


def test_lists_that_were_written_are_read_back() -> None:
    lists = (Mustpass("thin", "1.0", "1.23", 2, "set:00"), Mustpass("whole", "1.0", "1.23", 3, "set:11"))
    text = mustpass.format_mustpass(lists)
    assert msgspec.convert(tomllib.loads(text)["list"], tuple[Mustpass, ...]) == lists


def test_the_digest_of_a_suite_has_64_digits_and_stays() -> None:
    assert mustpass.digest_suite() == mustpass.digest_suite()
    assert len(mustpass.digest_suite()) == 64
