"""Attempts on sockets that are listened to outside: on loopback and in folders of the benchmark."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time

from benchmarks.attacks.jailed import arena
from benchmarks.attacks.jailed.attempt import Goal, attempt
from benchmarks.attacks.jailed.system_calls import LIBC, Ring, address_of, call, checked, compat, low_memory

LOOPBACK = "127.0.0.1"
MPTCP, FAST_OPEN, VSOCK, NETLINK_USER = 262, 0x20000000, 40, 2


def _said(goal: Goal, kind: int, how: int, address: object, protocol: int = 0) -> object:
    with socket.socket(kind, how, protocol) as made:
        made.settimeout(1)
        made.connect(address)  # type: ignore[arg-type]
        made.sendall(goal.name.encode())
    return "sent"


@attempt("sockets", arena.heard)
def connect_over_tcp(goal: Goal) -> object:
    return _said(goal, socket.AF_INET, socket.SOCK_STREAM, (LOOPBACK, goal.outside.numbers["tcp"]))


@attempt("sockets", arena.heard)
def connect_over_tcp_of_ipv6(goal: Goal) -> object:
    return _said(goal, socket.AF_INET6, socket.SOCK_STREAM, ("::1", goal.outside.numbers["tcp6"]))


@attempt("sockets", arena.heard)
def connect_over_mptcp(goal: Goal) -> object:
    return _said(goal, socket.AF_INET, socket.SOCK_STREAM, (LOOPBACK, goal.outside.numbers["tcp"]), MPTCP)


@attempt("sockets", arena.heard)
def send_with_tcp_fast_open(goal: Goal) -> object:
    with socket.socket() as made:
        return made.sendto(goal.name.encode(), FAST_OPEN, (LOOPBACK, goal.outside.numbers["tcp"]))


@attempt("sockets", arena.heard)
def send_over_udp(goal: Goal) -> object:
    return _said(goal, socket.AF_INET, socket.SOCK_DGRAM, (LOOPBACK, goal.outside.numbers["udp"]))


@attempt("sockets", arena.heard)
def send_over_udp_of_ipv6(goal: Goal) -> object:
    return _said(goal, socket.AF_INET6, socket.SOCK_DGRAM, ("::1", goal.outside.numbers["udp6"]))


@attempt("sockets", arena.heard)
def send_raw(goal: Goal) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as made:
        text = goal.name.encode()
        head = struct.pack(">4H", 4444, goal.outside.numbers["udp"], 8 + len(text), 0)
        return made.sendto(head + text, (LOOPBACK, 0))


@attempt("sockets", arena.heard)
def send_a_packet(goal: Goal) -> object:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as made:
        made.bind(("lo", 0))
        return made.send(bytes(12) + struct.pack(">H", arena.EXPERIMENTAL) + goal.name.encode())


@attempt("sockets", arena.heard)
def connect_with_io_uring(goal: Goal) -> object:
    ring = Ring()
    made = ring.do(45, socket.AF_INET, socket.SOCK_STREAM, 0, 0)
    address = ctypes.create_string_buffer(address_of(goal.outside.numbers["tcp"]), 16)
    ring.do(16, made, 16, ctypes.addressof(address), 0)
    text = ctypes.create_string_buffer(goal.name.encode())
    return ring.do(23, made, 0, ctypes.addressof(text), len(goal.name))


@attempt("sockets", arena.heard)
def connect_as_a_32_bit_program(goal: Goal) -> object:
    made = compat(359, socket.AF_INET, socket.SOCK_STREAM, 0)
    compat(362, made, low_memory(address_of(goal.outside.numbers["tcp"])), 16)
    return os.write(made, goal.name.encode())


@attempt("sockets", arena.heard)
def connect_by_socketcall(goal: Goal) -> object:
    made = compat(102, 1, low_memory(struct.pack("3I", socket.AF_INET, socket.SOCK_STREAM, 0)))
    address = low_memory(address_of(goal.outside.numbers["tcp"]))
    compat(102, 3, low_memory(struct.pack("3I", made, address, 16)))
    return os.write(made, goal.name.encode())


@attempt("sockets", arena.heard)
def connect_by_x32(goal: Goal) -> object:
    made = call(0x40000000 + 41, socket.AF_INET, socket.SOCK_STREAM, 0)
    call(0x40000000 + 42, made, ctypes.create_string_buffer(address_of(goal.outside.numbers["tcp"]), 16), 16)
    return os.write(made, goal.name.encode())


@attempt("sockets", arena.heard)
def connect_in_the_network_of_another(goal: Goal) -> object:
    checked(LIBC.setns(os.open(f"/proc/{goal.outside.pid}/ns/net", os.O_RDONLY), 0))
    return connect_over_tcp(goal)


@attempt("sockets", arena.port_was_open)
def listen_on_a_port(goal: Goal) -> object:
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((LOOPBACK, goal.outside.numbers["free"]))
        made.listen()
        time.sleep(0.6)
    return "listened"


@attempt("sockets", arena.heard)
def ask_a_daemon_in_run(goal: Goal) -> object:
    return _said(goal, socket.AF_UNIX, socket.SOCK_STREAM, goal.outside.names["run"])


@attempt("sockets", arena.heard)
def ask_a_daemon_in_tmp(goal: Goal) -> object:
    return _said(goal, socket.AF_UNIX, socket.SOCK_STREAM, goal.outside.names["tmp"])


@attempt("sockets", arena.heard)
def ask_a_daemon_at_home(goal: Goal) -> object:
    return _said(goal, socket.AF_UNIX, socket.SOCK_STREAM, goal.outside.names["home"])


@attempt("sockets", arena.heard)
def ask_a_daemon_through_proc(goal: Goal) -> object:
    path = goal.outside.names["home"]
    return _said(goal, socket.AF_UNIX, socket.SOCK_STREAM, f"/proc/{goal.outside.pid}/root{path}")


@attempt("sockets", arena.heard)
def send_to_a_daemon(goal: Goal) -> object:
    return _said(goal, socket.AF_UNIX, socket.SOCK_DGRAM, goal.outside.names["datagrams"])


@attempt("sockets", arena.heard)
def send_to_a_daemon_from_a_pair(goal: Goal) -> object:
    pair, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return pair.sendto(goal.name.encode(), goal.outside.names["datagrams"])


@attempt("sockets", arena.heard)
def send_from_a_pair_to_an_abstract_name(goal: Goal) -> object:
    pair, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return pair.sendto(goal.name.encode(), b"\0" + goal.outside.names["abstract datagrams"].encode())


@attempt("sockets", arena.heard)
def connect_a_pair_to_a_daemon(goal: Goal) -> object:
    pair, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pair.connect(goal.outside.names["datagrams"])
    return os.write(pair.fileno(), goal.name.encode())


@attempt("sockets", arena.heard)
def ask_an_abstract_name(goal: Goal) -> object:
    return _said(goal, socket.AF_UNIX, socket.SOCK_STREAM, b"\0" + goal.outside.names["abstract"].encode())


@attempt("sockets", arena.heard)
def send_to_an_abstract_name(goal: Goal) -> object:
    return _said(goal, socket.AF_UNIX, socket.SOCK_DGRAM, b"\0" + goal.outside.names["abstract datagrams"].encode())


@attempt("sockets", arena.heard)
def send_over_netlink(goal: Goal) -> object:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_USER) as made:
        text = goal.name.encode()
        head = struct.pack("=IHHII", 16 + len(text), 16, 0, 0, 0)
        return made.sendto(head + text, (goal.outside.numbers["netlink"], 0))


@attempt("sockets", arena.heard)
def connect_over_vsock(goal: Goal) -> object:
    return _said(goal, VSOCK, socket.SOCK_STREAM, (1, goal.outside.numbers["vsock"]))
