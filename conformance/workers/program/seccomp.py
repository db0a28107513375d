"""Which system calls a process may make: a list of those that are allowed, as a program for Linux's seccomp.

Every other call fails with EPERM, one that opens a socket with EACCES, and one that is newer than this list with
ENOSYS, as on a kernel that does not know it. Programs of another architecture (32 bits, x32) make no call at all.

The numbers are those of Linux's headers: unistd.h, seccomp.h, filter.h, audit.h, sched.h, fcntl.h, ioctls.h.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from collections.abc import Mapping
from typing import Any

ALWAYS = """
read 0 63, write 1 64, open 2 -, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, poll 7 -, lseek 8 62, mmap 9 222,
mprotect 10 226, munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, access 21 -, pipe 22 -, select 23 -, sched_yield 24 124,
mremap 25 216, msync 26 227, mincore 27 232, madvise 28 233, dup 32 23, dup2 33 -, pause 34 -, nanosleep 35 101,
getitimer 36 102, alarm 37 -, setitimer 38 103, getpid 39 172, sendfile 40 71, shutdown 48 210, getsockname 51 204,
getpeername 52 205, setsockopt 54 208, getsockopt 55 209, sendmsg 46 211, recvmsg 47 212, recvfrom 45 207,
sendmmsg 307 269, recvmmsg 299 243, exit 60 93, wait4 61 260, kill 62 129, uname 63 160, fsync 74 82, fdatasync 75 83,
truncate 76 45, ftruncate 77 46, getdents 78 -, getcwd 79 17, chdir 80 49, fchdir 81 50, rename 82 -, mkdir 83 -,
rmdir 84 -, creat 85 -, link 86 -, unlink 87 -, symlink 88 -, readlink 89 -, umask 95 166, gettimeofday 96 169,
getrlimit 97 163, getrusage 98 165, sysinfo 99 179, times 100 153, getuid 102 174, getgid 104 176, geteuid 107 175,
getegid 108 177, setpgid 109 154, getppid 110 173, getpgrp 111 -, setsid 112 157, getgroups 115 158,
getresuid 118 148, getresgid 120 150, getpgid 121 155, getsid 124 156, setrlimit 160 164, capget 125 90,
capset 126 91, rt_sigpending 127 136, rt_sigtimedwait 128 137, rt_sigqueueinfo 129 138, rt_sigsuspend 130 133,
sigaltstack 131 132, personality 135 92, statfs 137 43, fstatfs 138 44, getpriority 140 141, sched_getparam 143 121,
sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
sched_rr_get_interval 148 127, mlock 149 228, munlock 150 229, mlockall 151 230, munlockall 152 231, prctl 157 167,
arch_prctl 158 -, sync 162 81, gettid 186 178, readahead 187 213, tkill 200 130, time 201 -, futex 202 98,
sched_getaffinity 204 123, set_thread_area 205 -, get_thread_area 211 -, epoll_create 213 -, getdents64 217 61,
set_tid_address 218 96, restart_syscall 219 128, fadvise64 221 223, timer_create 222 107, timer_settime 223 110,
timer_gettime 224 108, timer_getoverrun 225 109, timer_delete 226 111, clock_gettime 228 113, clock_getres 229 114,
clock_nanosleep 230 115, exit_group 231 94, epoll_wait 232 -, epoll_ctl 233 21, tgkill 234 131, waitid 247 95,
ioprio_get 252 31, openat 257 56, mkdirat 258 34, unlinkat 263 35, renameat 264 38, linkat 265 37, symlinkat 266 36,
readlinkat 267 78, faccessat 269 48, pselect6 270 72, ppoll 271 73, newfstatat 262 79, set_robust_list 273 99,
get_robust_list 274 100, splice 275 76, tee 276 77, sync_file_range 277 84, vmsplice 278 75, epoll_pwait 281 22,
signalfd 282 -, timerfd_create 283 85, eventfd 284 -, fallocate 285 47, timerfd_settime 286 86,
timerfd_gettime 287 87, signalfd4 289 74, eventfd2 290 19, epoll_create1 291 20, dup3 292 24, pipe2 293 59,
preadv 295 69, pwritev 296 70, rt_tgsigqueueinfo 297 240, getcpu 309 168, sched_getattr 315 275, renameat2 316 276,
seccomp 317 277, getrandom 318 278, memfd_create 319 279, membarrier 324 283, mlock2 325 284, copy_file_range 326 285,
preadv2 327 286, pwritev2 328 287, pkey_mprotect 329 288, pkey_alloc 330 289, pkey_free 331 290, statx 332 291,
rseq 334 293, pidfd_open 434 434, close_range 436 436, openat2 437 437, faccessat2 439 439, epoll_pwait2 441 441,
landlock_create_ruleset 444 444, landlock_add_rule 445 445, landlock_restrict_self 446 446, futex_waitv 449 449,
get_mempolicy 239 236, mbind 237 235, set_mempolicy 238 237, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10,
listxattr 194 11, llistxattr 195 12, flistxattr 196 13, cachestat 451 451, syncfs 306 267, mknod 133 -,
mknodat 259 33
"""
"""A call, its number on x86_64, and on aarch64. Each acts on the process itself, on what it has opened, or on files,
which are bounded by other means; `kill` and its like by the pid namespace or Landlock."""

BY_ARGUMENTS = """
clone 56 220, clone3 435 435, ioctl 16 29, fcntl 72 25, prlimit64 302 261, socket 41 198, socketpair 53 199,
sendto 44 206, setpriority 141 140, ioprio_set 251 30, sched_setaffinity 203 122, sched_setscheduler 144 119,
sched_setparam 142 118, sched_setattr 314 274
"""
"""Those that are allowed or not as their arguments are."""

PROGRAMS = "execve 59 221, execveat 322 281, fork 57 -, vfork 58 -"
"""They start a process; not where the policy is strict."""

SOCKETS = "connect 42 203, accept 43 202, bind 49 200, listen 50 201, accept4 288 242"
"""They reach another process through a socket."""

LOCKS = "flock 73 32"
"""They lock a file, and could lock one of others for ever. Drivers lock their caches."""

MODES = """
chmod 90 -, fchmod 91 52, chown 92 -, fchown 93 55, lchown 94 -, utime 132 -, utimes 235 -, futimesat 261 -,
fchownat 260 54, fchmodat 268 53, utimensat 280 88
"""
"""They change mode, owner and times of a file: Landlock does not bound them, a tree that is mounted read-only does."""

OF_WINE = """
ptrace 101 117, modify_ldt 154 -, process_vm_readv 310 270, process_vm_writev 311 271, inotify_init 253 -,
inotify_add_watch 254 27, inotify_rm_watch 255 28, inotify_init1 294 26
"""
"""Its server reads and sets registers and memory of its programs, and watches folders: a user has few instances."""

ARCHITECTURES = {"x86_64": (0xC000003E, 1, 317), "aarch64": (0xC00000B7, 2, 277)}
"""Machine -> its AUDIT_ARCH, its column in these lists, and the number of `seccomp` itself."""

NEWEST, X32 = 451, 0x40000000
"""The last call that these lists judge; the bit of x32's calls."""

SET_MODE_FILTER, GET_ACTION_AVAIL = 1, 2
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000
LOAD, EQUALS, ABOVE, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06

AF_UNIX, NOT_STREAM = 1, 0b10
"""The bit that SOCK_DGRAM has, which can be sent to an address, and SOCK_STREAM and SOCK_SEQPACKET have not."""

NEW_NAMESPACES, THREAD = 0x7E020000, 0x00010000
"""CLONE_NEW*, CLONE_THREAD."""

TO_OTHERS_BY_IOCTL = (
    0x5412, 0x541C, 0x541D, 0x540E, 0x5423, 0x5437, 0x8901, 0x8902, 0x40086602, 0x40046602, 0x401C5820, 0x40087602,
)  # fmt: skip
"""TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSCTTY, TIOCSETD, TIOCVHANGUP; FIOSETOWN and SIOCSPGRP, which have signals sent;
FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR and FS_IOC_SETVERSION, for which a file that is open for reading
is enough."""

TO_OTHERS, OF_LOCKS = (8, 10, 15, 1024, 1026), (6, 7, 37, 38)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY: they have signals sent. F_SETLK, F_SETLKW, F_OFD_SETLK*."""

PROCESS, OF_A_PROCESS = 0, 1
"""PRIO_PROCESS, IOPRIO_WHO_PROCESS."""


def is_available(library: ctypes.CDLL) -> bool:
    """Whether the kernel takes such a program, and this file knows the machine's numbers."""
    machine = ARCHITECTURES.get(platform.machine())
    if machine is None or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return False
    action = ctypes.c_uint32(RET_ERRNO)
    return not library.syscall(machine[2], GET_ACTION_AVAIL, 0, ctypes.byref(action))


def enter(library: ctypes.CDLL, policy: Mapping[str, Any], inside: bool) -> None:
    """Bound this thread, and what it starts. policy: as `jail.enter` takes it; inside: in namespaces of its own."""
    if not is_available(library):
        return
    program = make_filter(platform.machine(), policy, inside)
    instructions = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    described = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    library.syscall(ARCHITECTURES[platform.machine()][2], SET_MODE_FILTER, 0, described)


def make_filter(machine: str, policy: Mapping[str, Any], inside: bool) -> list[tuple[int, int, int, int]]:
    """The program for the kernel: (code, to skip if true, to skip if false, value) each."""
    architecture, column, _ = ARCHITECTURES[machine]
    program = [(LOAD, 0, 0, 4), (EQUALS, 1, 0, architecture), _refuse(errno.EPERM), (LOAD, 0, 0, 0)]
    program += [(AT_LEAST, 0, 1, X32), _refuse(errno.EPERM), (ABOVE, 0, 1, NEWEST), _refuse(errno.ENOSYS)]
    for name, number in _numbers(BY_ARGUMENTS, column).items():
        block = _by_arguments(name, policy, inside)
        program += [(EQUALS, 0, len(block), number), *block]
    for number in (425, *_numbers(SOCKETS, column).values()):  # io_uring_setup: a ring can open sockets, too
        if number == 425 or not policy.get("local_sockets"):
            program += [(EQUALS, 0, 1, number), _refuse(errno.EACCES)]
    allowed = _numbers(", ".join([ALWAYS, *_further(policy, inside)]), column)
    for first, last in _ranges(sorted(allowed.values())):
        program += [(AT_LEAST, 0, 2, first), (ABOVE, 1, 0, last), (RETURN, 0, 0, RET_ALLOW)]
    return [*program, _refuse(errno.EPERM)]


def _further(policy: Mapping[str, Any], inside: bool) -> list[str]:
    lists = [] if policy.get("strict") else [PROGRAMS]
    lists += [SOCKETS] if policy.get("local_sockets") else []
    lists += [LOCKS] if policy.get("locks") else []
    lists += [MODES] if inside or policy.get("locks") else []
    return [*lists, OF_WINE] if policy.get("copied") else lists


def _numbers(calls: str, column: int) -> dict[str, int]:
    """Name -> number of those that the machine has."""
    rows = [call.split() for call in calls.replace("\n", " ").split(",") if call.strip()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def _ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """(first, last) of numbers in a row."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number - found[-1][1] <= 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def _refuse(number: int) -> tuple[int, int, int, int]:
    return RETURN, 0, 0, RET_ERRNO | number


def _by_arguments(name: str, policy: Mapping[str, Any], inside: bool) -> list[tuple[int, int, int, int]]:
    """What is done with a call of this name."""
    local, strict = bool(policy.get("local_sockets")), bool(policy.get("strict"))
    if name == "clone3":  # its flags are in memory, which no filter reads; libc takes `clone` then
        return [_refuse(errno.ENOSYS)]
    if name == "prlimit64":  # of this process, or to read
        alternative = [(LOAD, 0, 0, 16), (EQUALS, 0, 1, 0), (RETURN, 0, 0, RET_ALLOW)]
        return [*alternative, *_allow_if(_is_null(2), errno.EPERM)]
    if name.startswith("socket") and (strict or (name == "socket" and not local)):
        return [_refuse(errno.EACCES)]
    tests: dict[str, list[tuple[int, int, int, bool]]] = {
        "clone": [(0, ANY_BIT, NEW_NAMESPACES, False), *([(0, ANY_BIT, THREAD, True)] if strict else [])],
        "ioctl": [(1, EQUALS, request, False) for request in TO_OTHERS_BY_IOCTL],
        "fcntl": [(1, EQUALS, of, False) for of in (*TO_OTHERS, *(() if policy.get("locks") else OF_LOCKS))],
        "socket": [(0, EQUALS, AF_UNIX, True)],
        "socketpair": [(0, EQUALS, AF_UNIX, True), *([] if local else [(1, ANY_BIT, NOT_STREAM, False)])],
        "sendto": [] if local else _is_null(4),
        "setpriority": [] if inside else [(0, EQUALS, PROCESS, True), (1, EQUALS, 0, True)],
        "ioprio_set": [] if inside else [(0, EQUALS, OF_A_PROCESS, True), (1, EQUALS, 0, True)],
    }
    others = [] if inside else [(0, EQUALS, 0, True)]  # sched_*
    refusal = errno.EACCES if name in ("socket", "socketpair", "sendto") else errno.EPERM
    return _allow_if(tests.get(name, others), refusal)


def _is_null(argument: int) -> list[tuple[int, int, int, bool]]:
    """Of a pointer, both halves are 0; the second one is told by a number from 16 on."""
    return [(argument, EQUALS, 0, True), (argument + 16, EQUALS, 0, True)]


def _allow_if(tests: list[tuple[int, int, int, bool]], number: int) -> list[tuple[int, int, int, int]]:
    """Allow it if all tests hold: (which argument, EQUALS or ANY_BIT, value, whether that is wanted) each."""
    program: list[tuple[int, int, int, int]] = []
    for at, (argument, code, value, wanted) in enumerate(tests):
        to_refusal = 2 * (len(tests) - at - 1) + 1
        offset = 16 + 8 * (argument % 16) + 4 * (argument // 16)
        program += [(LOAD, 0, 0, offset), (code, *((0, to_refusal) if wanted else (to_refusal, 0)), value)]
    return [*program, (RETURN, 0, 0, RET_ALLOW), _refuse(number)]
