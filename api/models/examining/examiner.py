"""The process that examines a model: it does one call of `epcheck.api`, and sends what comes of it."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import pickle
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from epcheck.api.models.examining import messages
from epcheck.api.models.examining.messages import Message
from epcheck.conformance.workers import confinement, heartbeat
from epcheck.conformance.workers.broker import use_broker
from epcheck.conformance.workers.program import jail
from epcheck.conformance.workers.program.fork import fork_workers
from epcheck.conformance.workers.program.serve import take_streams
from epcheck.conformance.workers.program.watch import ParentWatch, end_with_parent
from epcheck.generators.error import EpcheckError

SIGN_EVERY_S = 0.5

Say = Callable[[str], None]


class Sender:
    """Sends messages; signs of life not too often."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._sent = 0.0

    def send(self, message: Message, result: object = None) -> None:
        with self._lock:
            messages.write(self._pipe, message, result)
            self._sent = time.monotonic()

    def say(self, words: str) -> None:
        self.send(messages.Words(words))

    def keep(self, known: object) -> None:
        self.send(messages.Known(), known)

    def sign(self) -> None:
        if time.monotonic() - self._sent > SIGN_EVERY_S:
            self.send(messages.Alive())


def main(arguments: Sequence[str]) -> None:
    """Examine a model, or fork who does.

    A request is what our own process writes to stdin: (the bounds, as `jail.enter` takes them, or None; where temporary
    files of workers go, or nothing; the programs of the workers that our process starts for it, by stdin, or None where
    it starts them itself; the working directory), then (a function (options, say) -> result, options, whether the
    function takes `keep` as well, which sends what is known before the end), both pickled: this way all is ours.
    Whatever reads the model is imported before the bounds hold; nothing of the model is. What goes back is never
    unpickled (`messages`).
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--import", dest="module")
    parser.add_argument("--fork-server", type=int)
    parser.add_argument("--end-with-parent", action="store_true")
    options = parser.parse_args(arguments)
    if options.end_with_parent:
        end_with_parent()
    if options.module:
        importlib.import_module(options.module)
    if options.fork_server is not None:
        if threading.active_count() > 1:  # it cannot fork, and a thread would not be bound
            raise SystemExit(f"{options.module} has started threads")
        if not fork_workers(options.fork_server, before_second=_import_the_rest):
            return
        end_with_parent()
    _examine()


def _import_the_rest() -> None:
    """What an examination imports when it comes to need it, a third of the time that it takes: for all that follow."""
    from epcheck.generators import registry
    from epcheck.models.validation import page

    registry.load_operators()
    page.template()


def _examine() -> None:
    requests, answers = take_streams()
    bounds, temp, programs, folder = pickle.load(requests)
    os.chdir(folder)
    if temp:
        confinement.share_temp(temp)
    if bounds:
        jail.enter(bounds)
    ParentWatch()
    sender = Sender(answers)
    heartbeat.on_beat(sender.sign)
    function, options, keeps = pickle.load(requests)
    if programs is not None:
        use_broker(socket.socket(fileno=os.dup(requests.fileno())), programs)
    try:
        keep = (sender.keep,) if keeps else ()
        sender.send(messages.Done(), function(options, sender.say, *keep))
    except Exception as error:
        sender.send(_error_message(error))
    sys.stderr.flush()
    os._exit(0)


def _error_message(error: Exception) -> Message:
    match error:
        case EpcheckError():
            return messages.Refused(type(error).__module__, type(error).__qualname__, str(error))
        case MemoryError():
            return messages.Failed("it takes more memory than there is")
        case OSError():
            text, file = error.strerror or str(error), str(error.filename or "")
            return messages.SystemRefused(error.errno or errno.EIO, text, file)
        case RecursionError():
            return messages.Failed("its graphs or functions are nested too deeply, or call each other in a circle")
    return messages.Failed(_in_words(error))


def _in_words(error: Exception) -> str:
    """An exception that nobody expected, and where: it is worth a report."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "epcheck" in frame.filename]
    where = f", {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} (in epcheck{where}; please report it, with the model if you may)"


if __name__ == "__main__":
    main(sys.argv[1:])
