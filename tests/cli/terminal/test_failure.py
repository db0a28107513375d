"""Signals that a command hears, and sentences fit for a terminal."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import threading
import time

import pytest
import typer

from epcheck.api import interruption
from epcheck.cli.terminal import failure


def heard(closing_s: float, *numbers: int, pause_s: float = 0) -> int:
    """How many of these signals, one after the other with a pause, interrupt."""
    count = 0
    with interruption.interruptible(closing_s):
        for number in numbers:
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:
                count += 1
            time.sleep(pause_s)
    return count


def test_every_termination_interrupts() -> None:
    assert heard(0, signal.SIGTERM, signal.SIGTERM) == 2


def test_while_it_is_deaf_only_the_first_interrupts() -> None:
    assert heard(60, signal.SIGINT, signal.SIGTERM, signal.SIGINT) == 1


def test_what_hangs_can_be_interrupted_again() -> None:
    """A tick of the clock of Windows takes 16 ms."""
    assert heard(0.001, signal.SIGINT, signal.SIGINT, pause_s=0.05) == 2


@pytest.mark.parametrize(("number", "code", "says"), [(signal.SIGTERM, 130, "interrupted"), (0, 2, "Input/output")])
def test_a_terminal_that_is_gone_does_not_hide_the_interrupt(
    number: int, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGHUP comes with it, and the display cannot be taken down: `validate` and `nightly` ended with exit code 2."""

    def command() -> None:
        with failure.one_sentence():
            with interruption.interruptible(), contextlib.suppress(KeyboardInterrupt):
                if number:
                    signal.raise_signal(number)
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == code
    assert capsys.readouterr().err.startswith(f"epcheck: {says}")


@pytest.mark.skipif(os.name != "posix", reason="a process cannot be sent SIGTERM")
def test_no_interruption_leaves_a_lock_held() -> None:
    """A run hung in `Event.set` after a SIGTERM: one of three that interrupt nothing else left its lock held."""

    def terminate(after_s: float) -> None:
        time.sleep(after_s)
        os.kill(os.getpid(), signal.SIGTERM)

    rng = random.Random(0)
    for _ in range(12):
        event, interrupted = threading.Event(), False
        sender = threading.Thread(target=terminate, args=(rng.uniform(1e-3, 4e-3),))
        with interruption.interruptible(10):
            try:
                sender.start()  # a busy machine may not be through with it when the signal comes
                while True:
                    event.set()
                    event.clear()
            except KeyboardInterrupt:
                interrupted = True
            sender.join()
        setter = threading.Thread(target=event.set, daemon=True)
        setter.start()
        setter.join(5)
        assert (interrupted, setter.is_alive()) == (True, False)


def test_the_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    heard(60, signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
