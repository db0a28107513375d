"""Attempts on processes outside, and on what is to end with the jailed process."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from benchmarks.attacks.jailed import arena
from benchmarks.attacks.jailed.attempt import Goal, attempt
from benchmarks.attacks.jailed.system_calls import LIBC, call, checked, compat

VICTIM = "victim"
SIXTEEN = 16
LEFT_S = 90
SLEEPER = "import time; time.sleep({})"


@attempt("signals", arena.victim_ended, VICTIM)
def kill(goal: Goal) -> object:
    return os.kill(goal.victim.pid, signal.SIGKILL)


@attempt("signals", arena.victim_ended, VICTIM)
def kill_by_thread(goal: Goal) -> object:
    return call(234, goal.victim.pid, goal.victim.pid, 9)


@attempt("signals", arena.victim_ended, VICTIM)
def kill_by_any_thread(goal: Goal) -> object:
    return call(200, goal.victim.pid, 9)


@attempt("signals", arena.victim_ended, VICTIM)
def kill_by_descriptor(goal: Goal) -> object:
    return call(424, call(434, goal.victim.pid, 0), 9, None, 0)


@attempt("signals", arena.victim_ended, VICTIM)
def kill_by_the_folder_of_proc(goal: Goal) -> object:
    return call(424, os.open(f"/proc/{goal.victim.pid}", os.O_DIRECTORY), 9, None, 0)


@attempt("signals", arena.victim_ended, VICTIM)
def kill_by_queue(goal: Goal) -> object:
    return call(129, goal.victim.pid, 9, ctypes.create_string_buffer(struct.pack("iii", 9, 0, -1), 128))


@attempt("signals", arena.victim_ended, VICTIM)
def kill_a_group(goal: Goal) -> object:
    return os.killpg(goal.victim.pid, signal.SIGKILL)


@attempt("signals", arena.victim_ended, VICTIM)
def kill_as_a_32_bit_program(goal: Goal) -> object:
    return compat(37, goal.victim.pid, 9)


@attempt("signals", arena.victim_ended, VICTIM)
def stop(goal: Goal) -> object:
    return os.kill(goal.victim.pid, signal.SIGSTOP)


@attempt("signals", arena.victim_ended, VICTIM)
def let_a_socket_signal(goal: Goal) -> object:
    near, far = socket.socketpair()
    fcntl.fcntl(near, fcntl.F_SETOWN, goal.victim.pid)
    fcntl.fcntl(near, 10, 9)  # F_SETSIG: SIGKILL
    fcntl.fcntl(near, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    far.send(b"x")
    return "sent"


@attempt("signals", arena.victim_ended, VICTIM)
def let_a_pipe_signal_a_thread(goal: Goal) -> object:
    near, far = os.pipe()
    fcntl.fcntl(near, 15, struct.pack("ii", 0, goal.victim.pid))  # F_SETOWN_EX: a thread
    fcntl.fcntl(near, 10, 9)
    fcntl.fcntl(near, fcntl.F_SETFL, os.O_ASYNC)
    return os.write(far, b"x")


@attempt("signals", arena.victim_ended, VICTIM)
def let_a_lease_signal(goal: Goal) -> object:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"leased-{os.getpid()}"
    near = os.open(path, os.O_CREAT | os.O_RDONLY, 0o600)
    fcntl.fcntl(near, fcntl.F_SETOWN, goal.victim.pid)
    fcntl.fcntl(near, 10, 9)
    fcntl.fcntl(near, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    finally:
        path.unlink()


@attempt("signals", arena.victim_ended, VICTIM)
def end_with_the_tracer(goal: Goal) -> object:
    return checked(LIBC.ptrace(0x4206, goal.victim.pid, 0, 0x100000))  # SEIZE, EXITKILL


@attempt("relatives", arena.victim_changed, VICTIM)
def limit_its_seconds(goal: Goal) -> object:
    return resource.prlimit(goal.victim.pid, resource.RLIMIT_CPU, (1000, 1000))


@attempt("relatives", arena.victim_changed, VICTIM)
def limit_its_files(goal: Goal) -> object:
    return resource.prlimit(goal.victim.pid, resource.RLIMIT_NOFILE, (5, 5))


@attempt("relatives", arena.victim_changed, VICTIM)
def lower_its_priority(goal: Goal) -> object:
    return os.setpriority(os.PRIO_PROCESS, goal.victim.pid, 7)


@attempt("relatives", arena.victim_changed, VICTIM)
def lower_the_priority_of_its_group(goal: Goal) -> object:
    return os.setpriority(os.PRIO_PGRP, goal.victim.pid, 7)


@attempt("relatives", arena.victim_changed, VICTIM)
def take_its_cores(goal: Goal) -> object:
    return os.sched_setaffinity(goal.victim.pid, {min(os.sched_getaffinity(0))})


@attempt("relatives", arena.victim_changed, VICTIM)
def change_its_scheduler(goal: Goal) -> object:
    return os.sched_setscheduler(goal.victim.pid, os.SCHED_BATCH, os.sched_param(0))


@attempt("relatives", arena.victim_changed, VICTIM)
def change_its_scheduler_by_attributes(goal: Goal) -> object:
    return call(314, goal.victim.pid, ctypes.create_string_buffer(struct.pack("IIQiI3Q", 48, 3, 0, 0, 0, 0, 0, 0)), 0)


@attempt("relatives", arena.victim_changed, VICTIM)
def change_its_priority_of_io(goal: Goal) -> object:
    return call(251, 1, goal.victim.pid, 3 << 13)


@attempt("relatives", arena.victim_changed, VICTIM)
def have_it_killed_first(goal: Goal) -> object:
    return Path(f"/proc/{goal.victim.pid}/oom_score_adj").write_text("900")


@attempt("relatives", arena.victim_changed, VICTIM)
def change_what_its_core_has(goal: Goal) -> object:
    return Path(f"/proc/{goal.victim.pid}/coredump_filter").write_text("0x1")


@attempt("relatives", arena.victim_changed, VICTIM)
def change_its_slack_of_timers(goal: Goal) -> object:
    return Path(f"/proc/{goal.victim.pid}/timerslack_ns").write_text("9000000")


def _runners(goal: Goal) -> list[int]:
    """The runner of this round, by the folder that stands in its arguments."""
    folder = str(Path(goal.outside.folder).parent).encode()
    lines = {int(path.parent.name): path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
    return [pid for pid, line in lines.items() if b"\0--enter\0" in line and folder in line.split(b"\0")]


@attempt("relatives", arena.runner_changed)
def lower_the_priority_of_the_runner(goal: Goal) -> object:
    found = _runners(goal)
    for pid in found:
        os.setpriority(os.PRIO_PROCESS, pid, 3)
    return found


@attempt("relatives", arena.cgroup_changed, VICTIM)
def freeze_it(goal: Goal) -> object:
    folder = Path(goal.outside.names["cgroup"])
    (folder / "cgroup.procs").write_text(str(goal.victim.pid))
    return (folder / "freezer.state").write_text("FROZEN")


@attempt("memory of others", arena.victim_memory_changed, VICTIM)
def write_its_memory(goal: Goal) -> object:
    return _moved(311, goal.victim.pid, goal.victim.memory, b"reached reached!")


@attempt("memory of others", arena.told_the_secret, VICTIM)
def read_its_memory(goal: Goal) -> object:
    return _moved(310, goal.victim.pid, goal.victim.secret, bytes(SIXTEEN))


def _moved(number: int, pid: int, address: int, data: bytes) -> str:
    here = ctypes.create_string_buffer(data, SIXTEEN)
    near = ctypes.create_string_buffer(struct.pack("2Q", ctypes.addressof(here), SIXTEEN))
    far = ctypes.create_string_buffer(struct.pack("2Q", address, SIXTEEN))
    call(number, pid, near, 1, far, 1, 0)
    return here.raw.hex()


@attempt("memory of others", arena.victim_memory_changed, VICTIM)
def write_its_memory_through_proc(goal: Goal) -> object:
    return os.pwrite(os.open(f"/proc/{goal.victim.pid}/mem", os.O_RDWR), b"reached reached!", goal.victim.memory)


@attempt("memory of others", arena.told_the_secret, VICTIM)
def read_its_memory_through_proc(goal: Goal) -> object:
    return os.pread(os.open(f"/proc/{goal.victim.pid}/mem", os.O_RDONLY), SIXTEEN, goal.victim.secret).hex()


@attempt("memory of others", arena.victim_memory_changed, VICTIM)
def write_its_memory_as_a_tracer(goal: Goal) -> object:
    f = LIBC.ptrace
    f.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    checked(f(16, goal.victim.pid, None, None))
    os.waitpid(goal.victim.pid, 0)
    return checked(f(4, goal.victim.pid, goal.victim.memory, int.from_bytes(b"reached!", "little")))


@attempt("memory of others", arena.told_the_secret, VICTIM)
def read_its_environment(goal: Goal) -> object:
    found = Path(f"/proc/{goal.victim.pid}/environ").read_bytes().partition(b"PEER_SECRET=")[2]
    return found[: 2 * SIXTEEN].decode()


@attempt("memory of others", arena.pipe_heard, VICTIM)
def write_into_its_pipe(goal: Goal) -> object:
    place = os.open(f"/proc/{goal.victim.pid}/fd/{goal.victim.pipe}", os.O_WRONLY)
    return os.write(place, goal.name.encode())


@attempt("memory of others", arena.pipe_heard, VICTIM)
def take_its_descriptor(goal: Goal) -> object:
    place = call(438, call(434, goal.victim.pid, 0), goal.victim.pipe, 0)
    return os.write(place, goal.name.encode())


@attempt("memory of others", arena.printed_by_the_runner)
def write_into_the_streams_of_the_runner(goal: Goal) -> object:
    text = f"<{goal.name}>\n".encode()
    return sum(os.write(os.open(f"/proc/{pid}/fd/1", os.O_WRONLY), text) for pid in _runners(goal))


@attempt("memory of others", arena.told_zero, VICTIM)
def compare_its_descriptors(goal: Goal) -> object:
    return "zero" if call(312, goal.victim.pid, goal.victim.pid, 0, 0, 0) == 0 else "other"


@attempt("memory of others", arena.told_zero, VICTIM)
def count_its_events(goal: Goal) -> object:
    attributes = ctypes.create_string_buffer(struct.pack("IIQQQQQ", 1, 112, 1, 0, 0, 0, 0x60), 112)
    return "zero" if call(298, attributes, goal.victim.pid, -1, -1, 0) >= 0 else "other"


@attempt("memory of others", arena.told_zero)
def load_a_program_into_the_kernel(_goal: Goal) -> object:
    code = ctypes.create_string_buffer(struct.pack("<QQ", 0xB7, 0x95), 16)
    name = ctypes.create_string_buffer(b"GPL")
    asked = struct.pack("IIQQIIQ", 1, 2, ctypes.addressof(code), ctypes.addressof(name), 0, 0, 0)
    return "zero" if call(321, 5, ctypes.create_string_buffer(asked, 120), 120) >= 0 else "other"


@attempt("descriptors", arena.inherited_reached)
def write_into_inherited_descriptors(goal: Goal) -> object:
    found, wanted = [], set(goal.outside.numbers.values())
    for name in list(Path("/proc/self/fd").iterdir()):
        place = int(name.name)
        try:
            if place > 2 and os.fstat(place).st_ino in wanted:
                found.append(os.write(place, goal.name.encode()))
        except OSError:
            continue
    return found


def label(goal: Goal) -> str:
    """What stands in the arguments of a process that is left."""
    return f"peer-{goal.name}-{goal.outside.names['token']}"


def _let_go() -> None:
    """Hold no pipe of the runner: it would wait for their end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for place in range(3):
        os.dup2(nothing, place)
    os.closerange(3, 200)


def _sleep(goal: Goal) -> None:
    """Become a process that is seen by the name of the attempt in its arguments."""
    _let_go()
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", SLEEPER.format(LEFT_S), label(goal)])


def _forked(goal: Goal) -> int:
    if pid := os.fork():
        return pid
    os.setsid()
    if not os.fork():
        _sleep(goal)
    os._exit(0)


@attempt("left", arena.left)
def fork_twice(goal: Goal) -> object:
    return _forked(goal)


@attempt("left", arena.left)
def fork_in_a_thread(goal: Goal) -> object:
    thread = threading.Thread(target=_forked, args=(goal,))
    thread.start()
    return thread.join()


@attempt("left", arena.left)
def fork_without_copying(goal: Goal) -> object:
    line = [sys.executable, "-I", "-S", "-c", SLEEPER.format(LEFT_S), label(goal)]
    return os.posix_spawn(sys.executable, line, os.environ, setsid=True)


@attempt("left", arena.left)
def ignore_signals_and_close_all(goal: Goal) -> object:
    for number in {*range(1, 32)} - {9, 19}:
        signal.signal(number, signal.SIG_IGN)
    return _forked(goal)


@attempt("left", arena.left)
def fork_fifty_times(goal: Goal) -> object:
    for _ in range(50):
        if not os.fork():
            os.setsid()
            _sleep(goal)
    return "forked"


@attempt("left", arena.left)
def undo_the_signal_of_the_parent_s_end(goal: Goal) -> object:
    if os.fork():
        return "forked"
    _let_go()
    LIBC.prctl(1, 0, 0, 0, 0)
    LIBC.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    os.setsid()
    if os.fork():
        time.sleep(LEFT_S)
    LIBC.prctl(1, 0, 0, 0, 0)
    return _sleep(goal)


@attempt("left", arena.left)
def change_its_name(goal: Goal) -> object:
    if os.fork():
        return "forked"
    os.setsid()
    _let_go()
    os.chdir("/")
    os.execve("/bin/sleep", [f"[kworker/0:1-{label(goal)}]", str(LEFT_S)], {})


@attempt("left", arena.left)
def become_a_sibling(goal: Goal) -> object:
    if call(56, 0x8000 | signal.SIGCHLD, 0, 0, 0, 0):
        return "forked"
    os.setsid()
    return _sleep(goal)


@attempt("left", arena.left)
def run_from_who_ends_it(goal: Goal) -> object:
    if os.fork():
        return "forked"
    _let_go()
    until = time.monotonic() + 20
    while time.monotonic() < until:  # each lives for a moment only
        os.setsid() if os.getpgrp() != os.getpid() else None
        if os.fork():
            os._exit(0)
        time.sleep(0.03)
    return _sleep(goal)


@attempt("left", arena.left)
def stop_itself(goal: Goal) -> object:
    if os.fork():
        return "forked"
    _let_go()
    os.setsid()
    if not os.fork():
        _sleep(goal)
    return os.kill(os.getpid(), signal.SIGSTOP)


@attempt("left", arena.left)
def be_the_first_of_a_namespace(goal: Goal) -> object:
    checked(LIBC.unshare((0x10000000 if os.getuid() else 0) | 0x20000000))
    if os.fork():
        return "forked"
    os.setsid()
    return _sleep(goal)
