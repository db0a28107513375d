"""What of runs on a cluster needs no cluster: addresses, what is missing, how cases travel, a machine's own part."""

from __future__ import annotations

import contextlib
import pickle
import sys
import time

import pytest

from epcheck.conformance.cluster import node
from epcheck.conformance.cluster.node import Order
from tests.command_line import refused
from tests.conformance.small_cases import HERE, identities
from tests.whole_suite import whole_suite

pytest.importorskip("distributed")

from epcheck.conformance.cluster import cluster as _cluster  # noqa: F401  (a test takes it away)
from epcheck.conformance.cluster import connection, dispatch

RUN = ("run", "-t", "cpu", "--op", "TopK", "--limit", "60")


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connection, dispatch):
        monkeypatch.setattr(module, "CONNECT_S", 0.5)
    assert refused(*RUN, "--scheduler", "tcp://127.0.0.1:9").startswith(
        "no response from the Dask scheduler 'tcp://127.0.0.1:9': "
    )


@pytest.mark.parametrize("address", ["host", "host:8786", "http://host:8786", "tcp://host", "tcp://host:1/x"])
def test_what_is_no_address_of_a_scheduler(address: str) -> None:
    expected = f"'{address}' is not the address of a Dask scheduler; write for example tcp://host:8786"
    assert refused(*RUN, "--scheduler", address) == expected


@pytest.mark.slow
def test_a_cluster_does_not_choose_the_candidate() -> None:
    sentence = "--scheduler needs --target"
    assert refused("run", "--scheduler", "tcp://host:8786") == sentence


def test_without_dask_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from epcheck.conformance import cluster as package

    monkeypatch.delattr(package, "cluster")
    monkeypatch.delitem(sys.modules, "epcheck.conformance.cluster.cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    sentence = "--scheduler needs dask.distributed; run: pip install 'epcheck[distributed]'"
    assert refused(*RUN, "--scheduler", "tcp://host:8786") == sentence


@pytest.mark.slow
def test_cases_travel_in_little_more_than_the_bytes_of_their_ids() -> None:
    cases = whole_suite()
    assert len(pickle.dumps(cases)) / len(cases) < 160  # the names of cases by rule have 40 bytes and more
    assert pickle.loads(pickle.dumps(cases[-1])).build().model == cases[-1].build().model


def test_workers_that_nobody_asks_for_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "IDLE_S", 0.05)
    with contextlib.chdir(HERE):
        answer = node.work(Order("idle", "python:faulty_backends:right", baseline=None, reference=False), identities(2))
    assert isinstance(answer, node.TaskResult)
    assert len(answer.lines) == 2
    until = time.monotonic() + 10
    while node._idle and time.monotonic() < until:
        time.sleep(0.02)
    assert not node._idle
