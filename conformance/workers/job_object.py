"""Windows: a process in a job object, which bounds it and whatever it starts, and ends them all with our process.

The system closes our handle of the job when our process ends, however that comes about, and a job without handles ends
its processes (JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE). This file needs nothing but Python; elsewhere than on Windows
`enclosed` only starts the process. Names and numbers are those of winnt.h.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

CREATE_SUSPENDED = 0x00000004
KILL_ON_JOB_CLOSE, DIE_ON_UNHANDLED_EXCEPTION, JOB_MEMORY = 0x2000, 0x0400, 0x0200
EXTENDED_LIMITS, UI_RESTRICTIONS = 9, 4
"""JobObjectExtendedLimitInformation and JobObjectBasicUIRestrictions of JOBOBJECTINFOCLASS."""

HANDLES, READ_CLIPBOARD, WRITE_CLIPBOARD, SYSTEM_PARAMETERS, DISPLAY_SETTINGS, GLOBAL_ATOMS, DESKTOP, EXIT_WINDOWS = (
    1 << bit for bit in range(8)
)
FORBIDDEN = READ_CLIPBOARD | WRITE_CLIPBOARD | SYSTEM_PARAMETERS | DISPLAY_SETTINGS | DESKTOP | EXIT_WINDOWS
"""What no worker does to the user's session; handles and atoms stay, which drivers may use."""

TERMINATE, SET_QUOTA, SUSPEND_RESUME = 0x0001, 0x0100, 0x0800


class _BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("per_process_user_time_limit", ctypes.c_int64),
        ("per_job_user_time_limit", ctypes.c_int64),
        ("limit_flags", ctypes.c_uint32),
        ("minimum_working_set_size", ctypes.c_size_t),
        ("maximum_working_set_size", ctypes.c_size_t),
        ("active_process_limit", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", _BasicLimits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory_limit", ctypes.c_size_t),
        ("job_memory_limit", ctypes.c_size_t),
        ("peak_process_memory_used", ctypes.c_size_t),
        ("peak_job_memory_used", ctypes.c_size_t),
    )


class JobObject:
    """A job without processes. Its processes end when it is closed or dropped, or when our process ends."""

    def __init__(self, memory_bytes: int = 0) -> None:
        """memory_bytes: that its processes may commit together; 0 for no bound. Raises OSError."""
        self._handle: int | None = None
        if sys.platform == "win32":
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.CreateJobObjectW.restype = ctypes.c_void_p
            self._handle = self._kernel.CreateJobObjectW(None, None)
            if not self._handle:
                raise ctypes.WinError(ctypes.get_last_error())
            limits = _ExtendedLimits()
            limits.basic.limit_flags = KILL_ON_JOB_CLOSE | DIE_ON_UNHANDLED_EXCEPTION
            if memory_bytes:
                limits.basic.limit_flags |= JOB_MEMORY
                limits.job_memory_limit = memory_bytes
            self._set(EXTENDED_LIMITS, limits)
            self._set(UI_RESTRICTIONS, ctypes.c_uint32(FORBIDDEN))

    def add(self, pid: int, resume: bool = False) -> None:
        """Put a process into the job. resume: let it go on, which was started with CREATE_SUSPENDED. Raises OSError."""
        if sys.platform == "win32":
            self._kernel.OpenProcess.restype = ctypes.c_void_p
            process = self._kernel.OpenProcess(TERMINATE | SET_QUOTA | SUSPEND_RESUME, False, pid)
            if not process:
                raise ctypes.WinError(ctypes.get_last_error())
            handle = ctypes.c_void_p(process)
            added = self._kernel.AssignProcessToJobObject(ctypes.c_void_p(self._handle), handle)
            error = ctypes.get_last_error()
            if resume:
                ctypes.WinDLL("ntdll").NtResumeProcess(handle)
            self._kernel.CloseHandle(handle)
            if not added:
                raise ctypes.WinError(error)

    def close(self) -> None:
        """End its processes."""
        if sys.platform == "win32" and self._handle:
            self._kernel.CloseHandle(ctypes.c_void_p(self._handle))
            self._handle = None

    def __del__(self) -> None:
        self.close()

    def _set(self, what: int, value: Any) -> None:
        if sys.platform == "win32":
            size = ctypes.sizeof(value)
            if not self._kernel.SetInformationJobObject(ctypes.c_void_p(self._handle), what, ctypes.byref(value), size):
                raise ctypes.WinError(ctypes.get_last_error())


class EnclosedProcess(subprocess.Popen[bytes]):
    """A process that is in its own job from before its first instruction. It ends when this object is dropped."""

    def __init__(self, command: Sequence[str], memory_bytes: int, **options: Any) -> None:
        """memory_bytes: as of JobObject. options: of Popen. Where the system refuses a job, the process runs without.

        Raises OSError or ValueError.
        """
        self.job: JobObject | None = None
        if sys.platform != "win32":
            super().__init__(command, **options)
            return
        flags = int(options.pop("creationflags", 0))
        super().__init__(command, creationflags=flags | CREATE_SUSPENDED, **options)
        try:
            self.job = JobObject(memory_bytes)
            self.job.add(self.pid, resume=True)
        except OSError:
            self.job = None
            _resume(self.pid)


def _resume(pid: int) -> None:
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(kernel.OpenProcess(SUSPEND_RESUME, False, pid))
        ctypes.WinDLL("ntdll").NtResumeProcess(handle)
        kernel.CloseHandle(handle)
