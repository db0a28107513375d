"""All attempts: importing them puts them into ATTEMPTS."""

from benchmarks.attacks.jailed import on_files, on_processes, on_shared, on_sockets
from benchmarks.attacks.jailed.attempt import ATTEMPTS, attack, chosen

__all__ = ["ATTEMPTS", "attack", "chosen", "on_files", "on_processes", "on_shared", "on_sockets"]
