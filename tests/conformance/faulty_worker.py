"""Workers that do not speak the protocol, started like the real one: `python faulty_worker.py MODE`."""

from __future__ import annotations

import os
import sys
import time

from epcheck.conformance.workers.program import protocol

MODE = sys.argv[1]
HANDSHAKES = {
    "of_the_future": {"op": "hello", "protocol": protocol.PROTOCOL + 1, "facts": {"a": "b"}},
    "of_no_version": {"op": "hello", "facts": {"a": "b"}},
    "without_facts": {"op": "hello", "protocol": protocol.PROTOCOL, "facts": {}},
    "with_odd_facts": {"op": "hello", "protocol": protocol.PROTOCOL, "facts": [1]},
    "without_the_provider": {
        "op": "hello",
        "protocol": protocol.PROTOCOL,
        "facts": {"providers": "CPUExecutionProvider, Other"},
    },
}

if MODE in HANDSHAKES:
    protocol.write_frame(sys.stdout.buffer, protocol.encode(HANDSHAKES[MODE], {}))
elif MODE == "exits":
    print("ImportError: libfoo.so is not there", file=sys.stderr)
    sys.exit(5)
elif MODE == "talks":
    os.write(1, b"Welcome to this machine! Authorized use only.\n")
elif MODE == "answers_first":
    protocol.write_frame(sys.stdout.buffer, protocol.encode({"op": "done", "id": "x", "stage": "done"}, {}))
time.sleep(60)
