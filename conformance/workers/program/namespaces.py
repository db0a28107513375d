"""A container of Linux's namespaces, and the processes that keep it.

    guard (outside; the process that called) -> init (1 within) -> worker (2 within), and what the worker starts

The guard ends as the worker has ended, by the same signal or with the same exit code, after everything within has
ended; init ends with the guard, and everything within with init. Neither of them has anything open, or does anything.

The numbers are those of Linux's headers: sched.h, mount.h, fcntl.h, prctl.h, capability.h, unistd.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .cgroups import MOST_PROCESSES, join_groups, remove_groups
from .watch import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, end_children

CLONE = {"x86_64": 56, "aarch64": 220}
NEW_NAMESPACES = (0x10000000, 0x20000000, 0x00020000, 0x08000000, 0x40000000, 0x04000000, 0x02000000)
"""CLONE_NEWUSER, NEWPID, NEWNS, NEWIPC, NEWNET, NEWUTS, NEWCGROUP."""

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
"""System calls; on every architecture the same. The last is of Linux 5.12."""

AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
TREE_CLONE, TREE_CLOEXEC, FROM_DESCRIPTOR = 1, os.O_CLOEXEC if sys.platform == "linux" else 0, 4
RDONLY, NOSUID, NODEV, NOEXEC, REC, PRIVATE, BIND = 1, 2, 4, 8, 1 << 14, 1 << 18, 1 << 12

PR_GET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME, PR_CAPBSET_DROP = 2, 4, 15, 24
CAPABILITY_VERSION, CAP_DAC_OVERRIDE, CAPABILITIES = 0x20080522, 1, 64
"""Of root's capabilities the one that lets it open files of others stays: what it may write is bounded otherwise."""

GUARD, INIT = "epcheck-guard", "epcheck-init"
"""The names of these processes."""

LOOK_EVERY_S = 1.0
"""How often the guard looks whether who started it is there, in seconds, where the system does not end it itself."""

TEMPORARY = ("/tmp", "/var/tmp")
TMPFS = "mode=1777,size=50%,nr_inodes=1m"
NO_SOCKETS = ("/proc", "/sys", "/dev")


def contain(library: ctypes.CDLL, policy: Mapping[str, Any], devices: Iterable[str]) -> str:
    """Go on in namespaces of our own, as process 2: what called it stays outside as the guard. Say why where the system
    refuses a part: then nothing has changed. Call it while there is one thread.

    policy: as `jail.enter` takes it. devices: what of /dev there is within.
    """
    if platform.machine() not in CLONE:
        return f"no numbers for {platform.machine()}"
    if len(list(Path("/proc/self/task").iterdir())) > 1:  # a library's, which the child would wait for
        return "the process has threads"
    maps_pipe, to_init = os.pipe()
    status_pipe, to_guard = os.pipe()
    holding = ctypes.PyDLL(None, use_errno=True)  # with Python's lock, which the child has to have, too
    flags = ctypes.c_ulong(sum(NEW_NAMESPACES) | signal.SIGCHLD)
    init = holding.syscall(CLONE[platform.machine()], flags, None, None, None, None)
    if init == 0:
        os.close(to_init)
        os.close(status_pipe)
        try:
            _begin(library, maps_pipe)
            _mount(library, policy, devices)
            os.write(to_guard, b"+")
        except OSError as error:
            os.write(to_guard, f"-{error}".encode())
            os._exit(1)
        return _keep_worker(library, policy, to_guard)
    refused = os.strerror(ctypes.get_errno())
    os.close(maps_pipe)
    os.close(to_guard)
    if init > 0:
        groups: list[Path] = []
        with contextlib.suppress(OSError):
            groups = join_groups(init, policy)
            _map_identities(init)
            os.write(to_init, b"+")
        os.close(to_init)
        if os.read(status_pipe, 1) == b"+":
            _guard_container(library, init, status_pipe, groups)
        refused = os.read(status_pipe, 4096).decode(errors="replace") or "users cannot be mapped"
        os.waitpid(init, 0)
        remove_groups(groups)
    os.close(status_pipe)
    return refused


def _map_identities(process: int) -> None:
    """Of root all users and groups, which lets it read the files of others; of anybody else, who may map no more, its
    own."""
    folder, user, group = Path(f"/proc/{process}"), os.geteuid(), os.getegid()
    if user == 0:
        with contextlib.suppress(OSError):
            for name in ("uid_map", "gid_map"):
                lines = [line.split() for line in Path("/proc/self", name).read_text().splitlines()]
                (folder / name).write_text("".join(f"{first} {first} {count}\n" for first, _, count in lines))
            return
    with contextlib.suppress(OSError):
        (folder / "setgroups").write_text("deny")
    (folder / "uid_map").write_text(f"{user} {user} 1\n")
    (folder / "gid_map").write_text(f"{group} {group} 1\n")


def _begin(library: ctypes.CDLL, maps_pipe: int) -> None:
    library.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.read(maps_pipe, 1) != b"+":  # also where the guard has ended before
        raise OSError("users cannot be mapped")
    os.close(maps_pipe)


def _keep_worker(library: ctypes.CDLL, policy: Mapping[str, Any], to_guard: int) -> str:
    """As init: have a worker, which returns, reap what it leaves, and end with it."""
    import resource

    worker = os.fork()
    if worker == 0:
        os.close(to_guard)
        # Within, the system counts those of the user namespace, except root's.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES,) * 2)
        if any(path.startswith("/proc") for path in policy["writable"]):
            own = _tree(library, "/proc/self")
            _set_read_only(library, own, False)
            _attach(library, own, "/proc/self")
        return ""
    drop_capabilities(library)
    _become(library, INIT, to_guard)
    while True:
        with contextlib.suppress(OSError):
            ended, status = os.wait()
            if ended == worker:
                os.write(to_guard, struct.pack("=i", status))
                os._exit(0)


def _become(library: ctypes.CDLL, name: str, kept: int) -> None:
    """A process that has nothing open but `kept`, and is known by its name."""
    library.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    library.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.closerange(0, kept)
    os.closerange(kept + 1, 1 << 16)
    with contextlib.suppress(OSError):
        os.chdir("/")


def _guard_container(library: ctypes.CDLL, init: int, status_pipe: int, groups: list[Path]) -> None:
    _become(library, GUARD, status_pipe)
    status = _wait_for(init, lambda: os.kill(init, signal.SIGKILL))
    remove_groups(groups)
    of_worker = os.read(status_pipe, 4)
    _end_like(struct.unpack("=i", of_worker)[0] if len(of_worker) == 4 else status)


def guard_children(library: ctypes.CDLL) -> None:
    """Where there are no namespaces: go on in a child. What called it stays as its guard, who adopts what processes
    within leave, and ends it with the child."""
    library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    worker = os.fork()
    if worker == 0:
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        return

    def end(*_signal: object) -> None:
        end_children()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    at_end = ctypes.c_int(0)
    library.prctl(PR_GET_PDEATHSIG, ctypes.byref(at_end), 0, 0, 0)
    if at_end.value:
        library.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    _become(library, GUARD, nothing)
    status = _wait_for(worker, end)
    end_children()
    _end_like(status)


def _wait_for(child: int, end: Callable[[], object]) -> int:
    """The status with which the child ends; `end` is called where who started this process has ended."""
    parent, orphaned = os.getppid(), False
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    return ended[1]
        if os.getppid() != parent and not orphaned:
            orphaned = True
            end()
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_EVERY_S)


def _end_like(status: int) -> None:
    """End as a process with this wait status did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _mount(library: ctypes.CDLL, policy: Mapping[str, Any], devices: Iterable[str]) -> None:
    """The file system within: everything may be read, and nothing written but what the policy names. /dev, /dev/shm,
    terminals and /proc are its own. Raises OSError."""
    folder = str(Path.cwd())
    points = [_unescape(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    own = [*policy["writable"], policy.get("temp") or ""]
    copied = [os.path.realpath(path) for path in policy.get("copied", ())]
    copied += TEMPORARY if copied else ()
    kept = sorted({os.path.realpath(path) for path in own if path.startswith("/") and not path.startswith("/proc")})
    _do_mount(library, None, "/", None, REC | PRIVATE)
    copies = [(path, _tree(library, path)) for path in sorted(copied) if Path(path).is_dir()]
    trees = [(path, _tree(library, path)) for path in kept if Path(path).exists()]
    nodes = [(path, _tree(library, path)) for path in devices]
    _set_read_only(library, None, True)
    _do_mount(library, "tmpfs", "/proc", "tmpfs", 0, "size=50%")  # below the real one, which comes last
    Path("/proc/empty").mkdir()
    if policy.get("local_sockets"):
        _hide_sockets(library, "/", points)
    for number, (path, tree) in enumerate(copies):
        if any(point.startswith(f"{path}/") for point in points):
            os.close(tree)
            _mount_beside(library, path)
        else:
            _attach(library, tree, path)
            _mount_copy(library, path, f"/proc/{number}")
    for path, tree in trees:
        _attach(library, tree, path)
    _make_devices(library, nodes)
    _do_mount(library, "proc", "/proc", "proc", RDONLY | NOSUID | NODEV | NOEXEC)
    with contextlib.suppress(OSError):
        os.chdir(folder)  # not what lies below what was mounted
        return
    os.chdir("/")


def _hide_sockets(library: ctypes.CDLL, folder: str, points: list[str]) -> None:
    """Through an overlay files are read, and no Unix socket below is found. It cannot hold other mounts: where there
    are some, the folders beside them are overlaid, and sockets that are there now are covered."""
    inside = folder.rstrip("/") + "/"
    if not any(point.startswith(inside) and point != folder for point in points):
        with contextlib.suppress(PermissionError):
            os.chdir(folder)
            _do_mount(library, "overlay", ".", "overlay", RDONLY, "lowerdir=/proc/empty:.")
        return
    with contextlib.suppress(PermissionError):
        for entry in os.scandir(folder):
            with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and entry.path not in NO_SOCKETS:
                    _hide_sockets(library, entry.path, points)
                elif stat.S_ISSOCK(mode):
                    _do_mount(library, os.devnull, entry.path, None, BIND)


def _mount_copy(library: ctypes.CDLL, path: str, place: str) -> None:
    """What is written to the folder from now on is in memory, and goes with the container."""
    for name in ("", "upper", "work"):
        Path(place, name).mkdir()
    Path(place, "upper").chmod(stat.S_IMODE(Path(path).stat().st_mode))
    os.chdir(path)
    options = f"lowerdir=.,upperdir={place}/upper,workdir={place}/work,userxattr"
    _do_mount(library, "overlay", ".", "overlay", 0, options)


def _mount_beside(library: ctypes.CDLL, path: str) -> None:
    """As `_mount_copy` for a folder with other mounts below, which no overlay holds: what is written to it is in
    memory, and what is there now can be read below it."""
    now = []
    for entry in os.scandir(path):
        if not entry.is_symlink() and (entry.is_dir() or entry.is_file()):
            with contextlib.suppress(FileNotFoundError):
                now.append((entry.path, _tree(library, entry.path), entry.is_dir()))
    _do_mount(library, "tmpfs", path, "tmpfs", NOSUID | NODEV, TMPFS)
    for below, tree, is_folder in now:
        _make_place(below, is_folder)
        _attach(library, tree, below)


def _make_place(path: str, is_folder: bool) -> None:
    """Something that can be mounted on."""
    if is_folder:
        Path(path).mkdir()
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _make_devices(library: ctypes.CDLL, nodes: list[tuple[str, int]]) -> None:
    _do_mount(library, "tmpfs", "/dev", "tmpfs", NOSUID | NOEXEC, "mode=755,size=64k")
    for path, tree in nodes:
        _make_place(path, stat.S_ISDIR(os.fstat(tree).st_mode))
        _attach(library, tree, path)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        Path("/dev", name).symlink_to(f"/proc/self/fd/{number}")
    Path("/dev/fd").symlink_to("/proc/self/fd")
    Path("/dev/ptmx").symlink_to("pts/ptmx")
    for name in ("shm", "pts"):
        Path("/dev", name).mkdir()
    dev = os.open("/dev", os.O_PATH | os.O_CLOEXEC)
    _set_read_only(library, dev, True)
    os.close(dev)
    _do_mount(library, "tmpfs", "/dev/shm", "tmpfs", NOSUID | NODEV, TMPFS)
    _do_mount(library, "devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")


def _do_mount(
    library: ctypes.CDLL, source: str | None, target: str, kind: str | None, flags: int, options: str = ""
) -> None:
    named = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(library.mount(*named, ctypes.c_ulong(flags), os.fsencode(options) or None), f"mount {kind or ''} {target}")


def _tree(library: ctypes.CDLL, path: str) -> int:
    """A copy of what is mounted there, not yet anywhere."""
    flags = TREE_CLONE | TREE_CLOEXEC | AT_RECURSIVE
    return _check(library.syscall(OPEN_TREE, AT_FDCWD, os.fsencode(path), flags), f"open_tree {path}")


def _attach(library: ctypes.CDLL, tree: int, path: str) -> None:
    moved = library.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(path), FROM_DESCRIPTOR)
    _check(moved, f"move_mount {path}")
    os.close(tree)


def _set_read_only(library: ctypes.CDLL, tree: int | None, wanted: bool) -> None:
    """tree: what was mounted at a descriptor; None for everything."""
    attributes = struct.pack("=4Q", RDONLY if wanted else 0, 0 if wanted else RDONLY, 0, 0)
    place = (AT_FDCWD, b"/", AT_RECURSIVE) if tree is None else (tree, b"", AT_EMPTY_PATH)
    _check(library.syscall(MOUNT_SETATTR, *place, attributes, ctypes.c_size_t(len(attributes))), "mount_setattr")


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return int(result)


def _unescape(path: str) -> str:
    """A path as /proc/self/mountinfo has it."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def drop_capabilities(library: ctypes.CDLL) -> None:
    """Those to load modules, mount, trace, configure the network: root's, and everybody's in a container."""
    kept = 0 if os.geteuid() else 1 << CAP_DAC_OVERRIDE
    for capability in range(CAPABILITIES):
        if not kept >> capability & 1:
            library.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header, sets = struct.pack("=Ii", CAPABILITY_VERSION, 0), struct.pack("=6I", kept, kept, 0, 0, 0, 0)
    library.capset(header, sets)
