"""Signals that a command hears, and sentences fit for a terminal."""

from __future__ import annotations

import signal

import pytest

from epcheck.api import interruption
from epcheck.cli.terminal import plain


def heard(closing_s: float, *numbers: int) -> int:
    """How many of these signals, one after the other, interrupt."""
    count = 0
    with interruption.interruptible(closing_s):
        for number in numbers:
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:
                count += 1
    return count


def test_every_termination_interrupts() -> None:
    assert heard(0, signal.SIGTERM, signal.SIGTERM) == 2


def test_while_it_is_deaf_only_the_first_interrupts() -> None:
    assert heard(60, signal.SIGINT, signal.SIGTERM, signal.SIGINT) == 1


def test_what_hangs_can_be_interrupted_again() -> None:
    assert heard(1e-9, signal.SIGINT, signal.SIGINT) == 2


def test_the_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    heard(60, signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a  b", "a  b"), ("two\nlines\t\x1b[31m", r"two\nlines\t\x1b[31m"), ("\ud800\u202e", r"\ud800\u202e")],
)
def test_a_name_from_a_stranger_stays_on_its_line(text: str, shown: str) -> None:
    assert plain.printable(text) == shown
