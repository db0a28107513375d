"""The process of a worker, from its arguments to the end of its requests."""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Tuple

from . import backends, jail, machine
from .serve import serve, take_streams
from .watch import ParentWatch, end_forks_with_us, end_group_with_us

COLLECT_AFTER = 50_000
"""New objects after which Python looks for cycles of garbage: requests and answers leave none."""

TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""Read by the runtime when it is imported. Without it 1.29 and later, outside Windows, send names and hashes of models
to Microsoft, and keep a data base and an identifier of the machine in the user's cache. A user's value stays."""

Providers = Sequence[Tuple[str, Mapping[str, str]]]
"""The name of each with its options."""


def main(arguments: list[str]) -> None:
    """Keep stdin and stdout for frames, execute the prelude, make the backend, then serve, or fork who serves.

    arguments: those of `worker.py`.
    """
    options = _parse(arguments)
    if options.list_adapters:
        from .backends.directml.adapters import list_adapters

        print(json.dumps([each._asdict() for each in list_adapters()]), flush=True)
        return
    jail.enter(_policy_of_description() if options.describe else options.jail)
    leads_group = options.backend.startswith("python:") and not jail.entered  # a jail has a guard
    if leads_group:
        end_group_with_us()
    end_forks_with_us()
    watch = ParentWatch()
    is_fork_server = options.fork_server is not None
    streams = None if is_fork_server else take_streams()
    os.environ.setdefault(TELEMETRY, "1")
    put_on_path(options.path)
    if not options.backend.startswith("python:"):
        # The threads of numpy's BLAS have nothing to do here, and spin.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if options.prelude:
        import runpy

        runpy.run_path(options.prelude, run_name="epcheck_prelude")
    backend = backends.make(options.backend, options.plugin, options.adapter)
    if options.describe:
        assert streams is not None
        streams[1].write(json.dumps({"provider": backend.provider, "trouble": backend.trouble}).encode() + b"\n")
        streams[1].flush()
        return

    facts = _find_facts(options, backend)
    if is_fork_server:
        facts(())
        from .fork import fork_workers

        watch.stop()
        if not fork_workers(options.fork_server, ends_what_is_left=bool(jail.entered)):
            return
        if leads_group and threading.active_count() == 1:
            end_group_with_us()
        ParentWatch()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    serve(*(streams or take_streams()), backend, facts)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", nargs="?", default="")
    parser.add_argument("--list-adapters", action="store_true")
    parser.add_argument("--adapter", type=int, default=0)
    parser.add_argument("--prelude")
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--fork-server", type=int)
    parser.add_argument("--plugin", type=json.loads)
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--jail", type=json.loads, default={})
    return parser.parse_args(arguments)


def _find_facts(options: argparse.Namespace, backend: Any) -> Callable[[Providers], dict[str, str]]:
    """What finds the facts of the machine, the backend and the adapter that providers use; all but the last are found
    once."""

    @functools.cache
    def own_facts() -> dict[str, str]:
        own = {"jail": jail.describe_level()}
        return {**machine.facts(), **own, **backend.facts(), **getattr(sys, "_epcheck_facts", dict)()}

    def facts(providers: Providers) -> dict[str, str]:
        is_direct = options.backend == "directml"
        used = [("DmlExecutionProvider", {"device_id": str(options.adapter)})] if is_direct else providers
        return {**_adapter_facts(getattr(backend, "plugin", None), used), **own_facts(), **backend.facts()}

    return facts


def _adapter_facts(plugin: Any, providers: Providers) -> dict[str, str]:
    """Facts of the adapter below a plugin's provider or these providers, on Windows; a prelude that states facts knows
    them itself."""
    if sys.platform != "win32" or hasattr(sys, "_epcheck_facts") or not (plugin or providers):
        return {}
    from .backends.directml.adapters import adapter_facts

    return adapter_facts(providers, plugin.device.device if plugin else None)


def _policy_of_description() -> dict[str, Any]:
    """What a library may do while it is asked which provider it holds: nothing is known of it then but that CUDA's
    driver, which it may load, needs a socket, locks its cache and names its threads in /proc/self, which no namespace
    of Linux 6.18 lets it write to."""
    if os.environ.get(jail.SWITCH) == "off":
        return {}
    has_cuda = Path("/dev/nvidiactl").exists()
    if not has_cuda:
        return {"writable": [], "locks": False, "local_sockets": False}
    return {"writable": ["/proc/self"], "locks": True, "local_sockets": True, "level": jail.LANDLOCK}


def put_on_path(folders: list[str]) -> None:
    """Put the folders first on `sys.path`, and take this one off it, where Python puts the folder of a script: a user's
    module that is named like one of ours must be found."""
    own = Path(__file__).parent.resolve()
    sys.path[:] = [*folders, *(entry for entry in sys.path if Path(entry).resolve() != own)]
