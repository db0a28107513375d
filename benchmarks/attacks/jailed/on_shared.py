"""Attempts on memory, queues, keys, locks and terminals that processes outside share."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.attacks.jailed import arena
from benchmarks.attacks.jailed.attempt import Goal, attempt
from benchmarks.attacks.jailed.system_calls import LIBC, call, checked

TERMINAL, FOLDER = "terminal", "folder"
HELD_S = 0.5


@attempt("shared", arena.shared_memory_changed)
def write_shared_memory(goal: Goal) -> object:
    LIBC.shmat.restype = ctypes.c_void_p
    place = LIBC.shmat(checked(LIBC.shmget(goal.outside.numbers["key"], 0, 0)), None, 0)
    return ctypes.memmove(place, b"reached!", 8)


@attempt("shared", arena.shared_memory_removed)
def remove_shared_memory(goal: Goal) -> object:
    return checked(LIBC.shmctl(checked(LIBC.shmget(goal.outside.numbers["key"] + 1, 0, 0)), 0, None))


@attempt("shared", arena.semaphore_changed)
def set_a_semaphore(goal: Goal) -> object:
    return checked(LIBC.semctl(checked(LIBC.semget(goal.outside.numbers["key"], 0, 0)), 0, 16, 7))


@attempt("shared", arena.message_queued)
def send_a_message(goal: Goal) -> object:
    queue = checked(LIBC.msgget(goal.outside.numbers["key"], 0))
    return checked(LIBC.msgsnd(queue, ctypes.create_string_buffer(struct.pack("l", 1) + b"reached!"), 8, 0))


@attempt("shared", arena.shm_file_changed)
def write_a_file_of_shared_memory(goal: Goal) -> object:
    return Path(goal.outside.names["shm"]).write_text("reached!")


@attempt("shared", arena.shm_file_made)
def make_a_file_of_shared_memory(goal: Goal) -> object:
    return Path(goal.outside.names["shm"] + "-made").write_text("reached!")


@attempt("shared", arena.posix_message_queued)
def send_a_posix_message(goal: Goal) -> object:
    queue = checked(LIBC.mq_open(goal.outside.names["queue"].encode(), os.O_WRONLY | os.O_NONBLOCK))
    return checked(LIBC.mq_send(queue, b"reached!", ctypes.c_size_t(8), 0))


@attempt("shared", arena.key_added)
def add_a_key(goal: Goal) -> object:
    name = goal.outside.names["key"] + "-made"
    return call(248, b"user", name.encode(), b"reached!", 8, -4)


@attempt("shared", arena.key_changed)
def change_a_key(goal: Goal) -> object:
    return call(250, 2, goal.outside.numbers["stored key"], b"reached!", 8, 0)


@attempt("shared", arena.told_the_key)
def read_a_key(goal: Goal) -> object:
    found = ctypes.create_string_buffer(64)
    length = call(250, 11, goal.outside.numbers["stored secret"], found, 64, 0)
    return found.raw[:length].decode()


@attempt("shared", arena.no_inotify_left)
def take_all_watches(goal: Goal) -> object:
    del goal
    taken = 0
    try:
        while taken < 400:
            call(294, 0)
            taken += 1
    except OSError:
        time.sleep(HELD_S)
    return taken


@attempt("locks", arena.lock_was_held, FOLDER)
def lock_a_file(goal: Goal) -> object:
    fcntl.flock(os.open(goal.planted, os.O_RDONLY), fcntl.LOCK_EX)
    return time.sleep(HELD_S)


@attempt("locks", arena.lock_was_held, FOLDER)
def lock_a_range(goal: Goal) -> object:
    fcntl.lockf(os.open(goal.planted, os.O_RDONLY), fcntl.LOCK_SH)
    return time.sleep(HELD_S)


@attempt("locks", arena.lock_was_held, FOLDER)
def lock_a_range_by_descriptor(goal: Goal) -> object:
    fcntl.fcntl(os.open(goal.planted, os.O_RDONLY), 38, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
    return time.sleep(HELD_S)


@attempt("locks", arena.lock_was_held, FOLDER)
def take_a_lease(goal: Goal) -> object:
    place = os.open(goal.planted, os.O_RDONLY)
    return _again(lambda: fcntl.fcntl(place, fcntl.F_SETLEASE, fcntl.F_RDLCK))


@attempt("locks", arena.lock_was_held, FOLDER)
def keep_a_program_from_being_written(goal: Goal) -> object:
    if os.fork():
        return time.sleep(HELD_S)
    return _again(lambda: os.execv(str(goal.folder / "program"), ["program", "1"]))


def _again(do: Callable[[], object]) -> object:
    """Do it, however often the outside is just looking at the file; hold it for a while."""
    for left in range(20, -1, -1):
        try:
            do()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ETXTBSY) or not left:
                raise
            time.sleep(0.007)
    return time.sleep(HELD_S)


@attempt("terminals", arena.terminal_reached, TERMINAL)
def write_to_a_terminal(goal: Goal) -> object:
    return os.write(os.open(goal.terminal, os.O_WRONLY | os.O_NOCTTY), b"reached!")


@attempt("terminals", arena.terminal_reached, TERMINAL)
def type_into_a_terminal(goal: Goal) -> object:
    place = os.open(goal.terminal, os.O_RDONLY | os.O_NOCTTY)
    return [fcntl.ioctl(place, termios.TIOCSTI, bytes([each])) for each in b"rm\n"]


@attempt("terminals", arena.terminal_reached, TERMINAL)
def set_up_a_terminal(goal: Goal) -> object:
    place = os.open(goal.terminal, os.O_RDONLY | os.O_NOCTTY)
    now = termios.tcgetattr(place)
    now[3] &= ~termios.ECHO
    return termios.tcsetattr(place, termios.TCSANOW, now)


@attempt("terminals", arena.terminal_reached, TERMINAL)
def resize_a_terminal(goal: Goal) -> object:
    place = os.open(goal.terminal, os.O_RDONLY | os.O_NOCTTY)
    return fcntl.ioctl(place, termios.TIOCSWINSZ, struct.pack("4H", 7, 7, 0, 0))


@attempt("terminals", arena.terminal_reached, TERMINAL)
def stop_a_terminal(goal: Goal) -> object:
    return termios.tcflow(os.open(goal.terminal, os.O_RDONLY | os.O_NOCTTY), termios.TCOOFF)


@attempt("terminals", arena.terminal_reached, TERMINAL)
def hang_up_a_terminal(goal: Goal) -> object:
    if os.fork():
        return time.sleep(HELD_S)
    os.setsid()
    fcntl.ioctl(os.open(goal.terminal, os.O_RDONLY | os.O_NOCTTY), termios.TIOCSCTTY, 0)
    return checked(LIBC.vhangup())


@attempt("terminals", arena.runner_terminal_reached)
def write_to_the_terminal_of_the_runner(_goal: Goal) -> object:
    return os.write(os.open("/dev/tty", os.O_WRONLY), b"reached!")


@attempt("terminals", arena.runner_terminal_reached)
def type_into_the_terminal_of_the_runner(_goal: Goal) -> object:
    return fcntl.ioctl(os.open("/dev/tty", os.O_RDONLY), termios.TIOCSTI, b"x")
