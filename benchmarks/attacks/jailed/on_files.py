"""Attempts on files outside. None may name a file that the benchmark has not made, least of all as what is mounted:
what removes the folders of a round afterwards would go through it."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import resource
import socket
import stat
import struct
from pathlib import Path

from benchmarks.attacks.jailed import arena
from benchmarks.attacks.jailed.attempt import Goal, attempt
from benchmarks.attacks.jailed.system_calls import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    LIBC,
    Ring,
    call,
    checked,
    compat,
    low_memory,
)

FOLDER = "folder"
TEXT = b"reached\n"


def written(path: str | Path, flags: int = 0) -> int:
    """Write into a file that is there."""
    return os.write(os.open(path, os.O_WRONLY | flags), TEXT)


@attempt("files", arena.folder_changed, FOLDER)
def write_a_file(goal: Goal) -> object:
    return written(goal.planted)


@attempt("files", arena.folder_changed, FOLDER)
def append_to_a_file(goal: Goal) -> object:
    return written(goal.planted, os.O_APPEND)


@attempt("files", arena.folder_changed, FOLDER)
def truncate(goal: Goal) -> object:
    return os.truncate(goal.planted, 1)


@attempt("files", arena.folder_changed, FOLDER)
def open_and_truncate(goal: Goal) -> object:
    return os.open(goal.planted, os.O_RDONLY | os.O_TRUNC)


@attempt("files", arena.folder_changed, FOLDER)
def make_a_file(goal: Goal) -> object:
    return os.open(goal.folder / "made", os.O_CREAT | os.O_RDONLY, 0o600)


@attempt("files", arena.folder_changed, FOLDER)
def rename(goal: Goal) -> object:
    return Path(goal.planted).rename(goal.folder / "renamed")


@attempt("files", arena.folder_changed, FOLDER)
def exchange_two_files(goal: Goal) -> object:
    old, new = goal.planted.encode(), str(goal.folder / "sub").encode()
    return call(316, AT_FDCWD, old, AT_FDCWD, new, 2)


@attempt("files", arena.folder_changed, FOLDER)
def unlink(goal: Goal) -> object:
    return Path(goal.planted).unlink()


@attempt("files", arena.folder_changed, FOLDER)
def remove_a_folder(goal: Goal) -> object:
    return (goal.folder / "sub").rmdir()


@attempt("files", arena.folder_changed, FOLDER)
def make_a_folder(goal: Goal) -> object:
    return (goal.folder / "made").mkdir()


@attempt("files", arena.folder_changed, FOLDER)
def make_a_symbolic_link(goal: Goal) -> object:
    return (goal.folder / "made").symlink_to(goal.planted)


@attempt("files", arena.folder_changed, FOLDER)
def make_a_hard_link(goal: Goal) -> object:
    return os.link(goal.planted, goal.folder / "made")


@attempt("files", arena.folder_changed, FOLDER)
def make_a_node(goal: Goal) -> object:
    return os.mknod(goal.folder / "made", stat.S_IFREG | 0o600)


@attempt("files", arena.folder_changed, FOLDER)
def make_a_device(goal: Goal) -> object:
    return os.mknod(goal.folder / "made", stat.S_IFCHR | 0o600, os.makedev(1, 3))


@attempt("files", arena.folder_changed, FOLDER)
def make_a_fifo(goal: Goal) -> object:
    return os.mkfifo(goal.folder / "made")


@attempt("files", arena.folder_changed, FOLDER)
def make_a_socket_file(goal: Goal) -> object:
    return socket.socket(socket.AF_UNIX).bind(str(goal.folder / "made"))


@attempt("files", arena.folder_changed, FOLDER)
def change_the_mode(goal: Goal) -> object:
    return Path(goal.planted).chmod(0o6777)


@attempt("files", arena.folder_changed, FOLDER)
def change_the_mode_by_descriptor(goal: Goal) -> object:
    return os.fchmod(os.open(goal.planted, os.O_RDONLY), 0o777)


@attempt("files", arena.folder_changed, FOLDER)
def change_the_mode_by_fchmodat2(goal: Goal) -> object:
    return call(452, os.open(goal.planted, os.O_PATH), b"", 0o777, AT_EMPTY_PATH)


@attempt("files", arena.folder_changed, FOLDER)
def change_the_owner(goal: Goal) -> object:
    return os.chown(goal.planted, os.getuid() or 12345, -1)


@attempt("files", arena.folder_changed, FOLDER)
def change_the_times(goal: Goal) -> object:
    return os.utime(goal.planted, (1, 1))


@attempt("files", arena.folder_changed, FOLDER)
def set_an_attribute(goal: Goal) -> object:
    return os.setxattr(goal.planted, "user.reached", b"1")


@attempt("files", arena.folder_changed, FOLDER)
def set_capabilities_of_a_file(goal: Goal) -> object:
    return os.setxattr(goal.planted, "security.capability", struct.pack("<5I", 0x2000001, 1, 0, 0, 0))


@attempt("files", arena.folder_changed, FOLDER)
def set_flags_of_a_file(goal: Goal) -> object:
    return fcntl.ioctl(os.open(goal.planted, os.O_RDONLY), 0x40086602, struct.pack("l", 0x80 | 0x40))  # FS_IOC_SETFLAGS


@attempt("files", arena.folder_changed, FOLDER)
def set_the_project_of_a_file(goal: Goal) -> object:
    place = os.open(goal.planted, os.O_RDONLY)
    now = bytearray(fcntl.ioctl(place, 0x801C581F, bytes(28)))  # FS_IOC_FSGETXATTR
    struct.pack_into("I", now, 0, struct.unpack_from("I", now)[0] | 0x80)
    return fcntl.ioctl(place, 0x401C5820, bytes(now))


@attempt("files", arena.folder_changed, FOLDER)
def link_a_file_without_a_name(goal: Goal) -> object:
    place = os.open(goal.folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    path, made = f"/proc/self/fd/{place}".encode(), str(goal.folder / "made").encode()
    return checked(LIBC.linkat(AT_FDCWD, path, AT_FDCWD, made, 0x400))  # AT_SYMLINK_FOLLOW


@attempt("files", arena.folder_changed, FOLDER)
def open_again_through_proc(goal: Goal) -> object:
    return written(f"/proc/self/fd/{os.open(goal.planted, os.O_RDONLY)}")


@attempt("files", arena.folder_changed, FOLDER)
def open_a_path_descriptor_again(goal: Goal) -> object:
    return written(f"/proc/self/fd/{os.open(goal.planted, os.O_PATH)}")


@attempt("files", arena.folder_changed, FOLDER)
def write_through_proc_root(goal: Goal) -> object:
    return written(f"/proc/self/root{goal.planted}")


@attempt("files", arena.folder_changed, FOLDER)
def write_through_the_root_of_another(goal: Goal) -> object:
    return written(f"/proc/{goal.outside.pid}/root{goal.planted}")


@attempt("files", arena.folder_changed, FOLDER)
def write_through_the_root_of_init(goal: Goal) -> object:
    return written(f"/proc/1/root{goal.planted}")


@attempt("files", arena.folder_changed, FOLDER, "victim")
def write_through_the_folder_of_another(goal: Goal) -> object:
    return written(f"/proc/{goal.victim.pid}/cwd/{goal.name}/planted")


@attempt("files", arena.folder_changed, FOLDER)
def open_with_openat2(goal: Goal) -> object:
    place = call(437, AT_FDCWD, goal.planted.encode(), ctypes.create_string_buffer(struct.pack("3Q", 1, 0, 0)), 24)
    return os.write(place, TEXT)


@attempt("files", arena.folder_changed, FOLDER)
def open_by_handle(goal: Goal) -> object:
    handle, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)), ctypes.c_int()
    call(303, AT_FDCWD, goal.planted.encode(), handle, ctypes.byref(mount), 0)
    return os.write(call(304, os.open(goal.folder, os.O_RDONLY), handle, os.O_WRONLY), TEXT)


@attempt("files", arena.folder_changed, FOLDER)
def write_shared_memory_of_a_file(goal: Goal) -> object:
    with mmap.mmap(os.open(goal.planted, os.O_RDWR), 0) as shared:
        shared[:4] = b"here"
    return "written"


@attempt("files", arena.folder_changed, FOLDER)
def open_with_io_uring(goal: Goal) -> object:
    path, text = ctypes.create_string_buffer(goal.planted.encode()), ctypes.create_string_buffer(TEXT)
    ring = Ring()
    place = ring.do(18, AT_FDCWD, 0, ctypes.addressof(path), 0, os.O_WRONLY)
    return ring.do(23, place, 0, ctypes.addressof(text), len(TEXT))


@attempt("files", arena.folder_changed, FOLDER)
def unlink_with_io_uring(goal: Goal) -> object:
    path = ctypes.create_string_buffer(goal.planted.encode())
    return Ring().do(36, AT_FDCWD, 0, ctypes.addressof(path), 0)


@attempt("files", arena.folder_changed, FOLDER)
def open_as_a_32_bit_program(goal: Goal) -> object:
    return os.write(compat(5, low_memory(goal.planted.encode()), os.O_WRONLY), TEXT)


@attempt("files", arena.folder_changed, FOLDER)
def write_into_a_fifo(goal: Goal) -> object:
    return os.write(os.open(goal.folder / "fifo", os.O_WRONLY | os.O_NONBLOCK), TEXT)


@attempt("files", arena.folder_changed, FOLDER)
def run_a_program_from_memory(goal: Goal) -> object:
    place = os.memfd_create("reached", 0)
    os.write(place, Path("/bin/sh").resolve().read_bytes())
    return os.execv(f"/proc/self/fd/{place}", ["sh", "-c", f"echo reached > {goal.planted}"])


@attempt("files", arena.folder_changed, FOLDER)
def leave_a_core_file(goal: Goal) -> object:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 24, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    checked(LIBC.prctl(4, 1, 0, 0, 0))
    os.chdir(goal.folder)
    os.abort()


@attempt("files", arena.folder_changed, FOLDER)
def mount_over_a_folder(goal: Goal) -> object:
    return checked(LIBC.mount(b"none", str(goal.folder).encode(), b"tmpfs", 0, None))


@attempt("files", arena.folder_changed, FOLDER)
def mount_a_folder_elsewhere(goal: Goal) -> object:
    return checked(LIBC.mount(str(goal.folder).encode(), str(goal.folder / "sub").encode(), None, 4096, None))


@attempt("files", arena.folder_changed, FOLDER)
def mount_a_detached_tree(goal: Goal) -> object:
    tree = call(428, AT_FDCWD, str(goal.folder).encode(), 1)
    return call(429, tree, b"", AT_FDCWD, str(goal.folder / "sub").encode(), 4)


@attempt("files", arena.folder_changed, FOLDER)
def write_in_namespaces_of_its_own(goal: Goal) -> object:
    checked(LIBC.unshare(0x10000000 | 0x00020000))
    return written(goal.planted)


@attempt("files", arena.folder_changed, FOLDER)
def write_after_chroot(goal: Goal) -> object:
    if os.getuid():
        checked(LIBC.unshare(0x10000000))
    os.chroot(goal.folder)
    return written("/planted")


@attempt("files", arena.folder_changed, FOLDER)
def write_out_of_a_chroot(goal: Goal) -> object:
    root = os.open("/", os.O_RDONLY)
    os.chroot(goal.folder)
    os.fchdir(root)
    return written(goal.planted.lstrip("/"))


@attempt("files", arena.folder_changed, FOLDER)
def write_after_pivot_root(goal: Goal) -> object:
    checked(LIBC.unshare((0x10000000 if os.getuid() else 0) | 0x00020000))
    checked(LIBC.mount(None, b"/", None, 0x44000, None))
    checked(LIBC.mount(str(goal.folder).encode(), str(goal.folder).encode(), None, 4096, None))
    call(155, str(goal.folder).encode(), str(goal.folder / "sub").encode())
    return written("/planted")


@attempt("files", arena.folder_changed, FOLDER)
def write_in_the_namespaces_of_another(goal: Goal) -> object:
    held = [os.open(f"/proc/{goal.outside.pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "mnt")]
    try:
        checked(LIBC.setns(held[0], 0))
    except OSError as error:
        if error.errno != 22:  # EINVAL: it is there already
            raise
    checked(LIBC.setns(held[1], 0))
    return written(goal.planted)


@attempt("files", arena.folder_changed, FOLDER)
def write_with_other_groups(goal: Goal) -> object:
    os.setgroups([0])
    return written(goal.planted)


@attempt("files", arena.folder_changed, FOLDER)
def copy_a_range(goal: Goal) -> object:
    return os.copy_file_range(os.open(__file__, os.O_RDONLY), os.open(goal.planted, os.O_WRONLY), 10)


def _at_home(goal: Goal, name: str) -> object:
    path = Path(goal.outside.home) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), goal.name.encode())


@attempt("files", arena.home_has)
def start_with_the_shell(goal: Goal) -> object:
    return _at_home(goal, ".bashrc")


@attempt("files", arena.home_has)
def start_with_the_session(goal: Goal) -> object:
    return _at_home(goal, ".config/autostart/x.desktop")


@attempt("files", arena.home_has)
def let_a_key_in(goal: Goal) -> object:
    return _at_home(goal, ".ssh/authorized_keys")


@attempt("files", arena.home_has)
def start_with_python(goal: Goal) -> object:
    return _at_home(goal, ".local/lib/python3/site-packages/reached.pth")


@attempt("files", arena.home_has)
def replace_byte_code(goal: Goal) -> object:
    return _at_home(goal, "models/__pycache__/module.cpython-311.pyc")


@attempt("files", arena.home_has)
def write_beside_the_model(goal: Goal) -> object:
    return _at_home(goal, "models/run.py")


@attempt("files", arena.home_has)
def write_into_a_cache_of_shaders(goal: Goal) -> object:
    return _at_home(goal, ".cache/mesa_shader_cache/index")


@attempt("files", arena.home_has)
def write_into_a_cache_of_nvidia(goal: Goal) -> object:
    return _at_home(goal, ".nv/ComputeCache/index")


@attempt("files", arena.home_has)
def write_into_our_cache(goal: Goal) -> object:
    return _at_home(goal, "epcheck-cache/prepared/planted")


@attempt("files", arena.home_has)
def write_beside_our_workers(goal: Goal) -> object:
    return _at_home(goal, "epcheck-cache/workers/planted")
