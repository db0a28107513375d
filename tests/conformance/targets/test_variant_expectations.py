"""Expectations of cases that depend on their variant: which variants may differ, and what they may give."""

from __future__ import annotations

import pytest

from epcheck.conformance.profile.exclusions import expectations_toml
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import VariantResult
from epcheck.conformance.records.terms import CRASH, DIFFERS, MISMATCH, REFUSED, USAGE_DEPENDENT
from epcheck.conformance.targets import expectation_file
from epcheck.conformance.targets.expectation import Expectation, ExpectationError, find_covering
from epcheck.conformance.targets.expectation_file import Found, Tolerance

THREADS = """
[[expect]]
case = "*"
status = "usage-dependent"
variant = ["threads=2", "threads=4"]
gives = ["crash", "refused"]
reason = "Two threads share one encoder."
"""

ORDER = """
[[expect]]
case = "*"
status = "usage-dependent"
variant = "lifecycle=*"
reason = "A released session closes the context."
"""


def covering(text: str, *results: tuple[str, str]) -> str:
    """The reason of the expectation that covers a case whose variants differ so; empty for none."""
    differing = [VariantResult(name, DIFFERS, "", Opinion("t", status)) for name, status in results]
    known = expectation_file.parse(text, "uses.toml")
    found = find_covering(known, Opinion("t", USAGE_DEPENDENT), differing)
    return found.reason if found else ""


@pytest.mark.parametrize(
    ("text", "results", "reason"),
    [
        (THREADS, [("threads=2", CRASH)], "Two threads share one encoder."),
        (THREADS, [("threads=2", CRASH), ("threads=4", REFUSED)], "Two threads share one encoder."),
        (THREADS, [("threads=2", MISMATCH)], ""),
        (THREADS, [("threads=shared", CRASH)], ""),
        (THREADS, [("threads=2", CRASH), ("reruns=feeds", MISMATCH)], ""),
        (ORDER, [("lifecycle=order", MISMATCH)], "A released session closes the context."),
        (ORDER, [("lifecycle=order", CRASH), ("threads=2", CRASH)], ""),
        (THREADS + ORDER, [("lifecycle=order", CRASH), ("threads=2", CRASH)], "A released session closes the context."),
        ("", [("threads=2", CRASH)], ""),
    ],
)
def test_every_variant_that_differs_has_to_be_covered(text: str, results: list[tuple[str, str]], reason: str) -> None:
    assert covering(text, *results) == reason


def test_an_entry_without_variants_covers_any() -> None:
    text = '[[expect]]\ncase = "*"\nstatus = "usage-dependent"\nreason = "All is known."\n'
    assert covering(text, ("threads=2", CRASH), ("reruns=feeds", MISMATCH)) == "All is known."


def test_other_statuses_are_covered_as_before() -> None:
    known = expectation_file.parse('[[expect]]\ncase = "*"\nstatus = "mismatch"\nreason = "No."\n', "x.toml")
    assert find_covering(known, Opinion("t", MISMATCH), ()) == known[0]
    assert find_covering(known, Opinion("t", CRASH), ()) is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            'status = "mismatch"\nvariant = "threads=2"',
            "'variant' is for the statuses usage-dependent and",
        ),
        ('status = "usage-dependent"\ngives = "crash"', "'gives' is what a variant gives; write 'variant', too"),
        ('status = "usage-dependent"\nvariant = [1]', "'variant' is a text or a list of texts"),
        ('status = "usage-dependent"\nvariant = 1', "'variant' has the wrong type, int"),
        ('status = "usage-dependent"\nvariant = "threads=2"\ngives = "dies"', "unknown status 'dies'"),
    ],
)
def test_a_variant_that_is_not_valid_is_refused(lines: str, message: str) -> None:
    with pytest.raises(ExpectationError) as raised:
        expectation_file.parse(f'[[expect]]\ncase = "*"\nreason = "x"\n{lines}\n', "uses.toml")
    assert message in str(raised.value)


def test_an_entry_says_which_variants_it_is_about() -> None:
    (entry,) = expectation_file.parse(THREADS, "uses.toml")
    assert str(entry) == "* (threads=2 or threads=4 gives crash or refused)"
    assert entry.as_expected().variant == "threads=2 or threads=4 gives crash or refused"


def test_the_exclusions_of_a_profile_keep_variants() -> None:
    known = expectation_file.parse(THREADS + ORDER, "uses.toml")
    assert expectation_file.parse(expectations_toml(known), "exclusions") == known


def test_a_proposed_entry_names_the_variants_that_differ() -> None:
    found = Found("Relu-14/float32/a[runtime]", USAGE_DEPENDENT, ("threads=2", "threads=4"))
    text = expectation_file.baseline("", "x.toml", [found], [], Tolerance("It is known.")).text
    (entry,) = expectation_file.parse(text, "x.toml")
    assert (entry.status, entry.variants, entry.gives) == (USAGE_DEPENDENT, ("threads=2", "threads=4"), ())


@pytest.mark.parametrize("target", ["cpu", "dml", "webgpu"])
def test_what_is_shipped_of_uses_names_variants_and_what_they_give(target: str) -> None:
    shipped: list[Expectation] = [e for e in expectation_file.load_shipped(target) if e.status == USAGE_DEPENDENT]
    assert shipped
    assert all(e.variants and e.gives for e in shipped)
