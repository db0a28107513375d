"""Locks on open files, between processes; the system releases the lock of a process that dies.

An exclusive lock is filelock's. Its `ReadWriteLock` does not serve for shared ones: it is an SQLite database and cannot
turn a shared lock into an exclusive one as a second call of `flock` does. Both kinds belong to the open file, not to
the process: a child that inherits the descriptor holds the lock as well.
"""

from __future__ import annotations

import errno
import sys

import filelock


def try_exclusive(descriptor: int) -> bool:
    """Take the exclusive lock of an open file without waiting; False when somebody else holds a lock of it.

    A shared lock of the same open file is given up for it. The lock lasts until the file is closed. Raises OSError
    where the file system has no locks.
    """
    return filelock.lock_descriptor(descriptor, blocking=False)


def share(descriptor: int) -> None:
    """Take a shared lock of an open file; waits while somebody else holds the exclusive one.

    The lock lasts until the file is closed. Raises OSError where the system (Windows) or the file system has none.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOSYS, "this system has no shared locks")
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_SH)
