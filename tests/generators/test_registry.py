"""Operators by name: what a module declares is what it has, and one operator imports one module."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from epcheck.generators import registry
from epcheck.generators.operator_index import declaring_modules, group_of


def test_every_module_has_the_operators_that_it_declares_in_that_order() -> None:
    modules: dict[str, list[str]] = {}
    for key, module in declaring_modules().items():
        modules.setdefault(module, []).append(key)
    assert len(modules) > 60
    for module, keys in modules.items():
        assert [operator.key for operator in importlib.import_module(module).OPERATORS] == keys


def test_listing_the_cases_of_one_operator_imports_one_module_of_operators() -> None:
    code = (
        "import sys\n"
        "from epcheck.generators import suite\n"
        "count = sum(1 for _ in suite.cases(['Slice']))\n"
        "modules = [m for m in sys.modules if m.startswith('epcheck.') and hasattr(sys.modules[m], 'OPERATORS')]\n"
        "print(count > 1000, modules)\n"
    )
    command = [sys.executable, "-P", "-c", code]
    printed = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    assert printed == "True ['epcheck.generators.operators.movement.slice']"


def test_an_operator_of_the_suite_is_sent_by_its_key() -> None:
    operator = registry.operator_of("Slice")
    assert pickle.loads(pickle.dumps(operator)) is operator
    assert len(pickle.dumps(operator)) < 100
    assert pickle.loads(pickle.dumps(replace(operator, without_rank_9="a reason"))) is not operator


def test_an_unknown_key_is_refused() -> None:
    assert "Nope" not in registry.all_operators()
    with pytest.raises(KeyError, match="Nope"):
        registry.operator_of("Nope")


def test_a_group_is_named_after_its_module_or_folder() -> None:
    assert group_of("Slice") == "slice"
    assert group_of("LSTM") == group_of("RNN") == "recurrent"
    assert group_of("ArgMax") == group_of("ArgMin") == "arg reduction"
    assert group_of("com.example::Gone") == "com.example::Gone"


@pytest.mark.parametrize("call", ["diff", "trend", "report"])
def test_what_reads_stored_runs_loads_no_generator(call: str) -> None:
    code = (
        f"import sys, epcheck.api.runs.{call}\n"
        "light = ('array', 'error', 'nearest', 'node', 'operator_index', 'operators')\n"
        "loaded = {m.split('.')[2] for m in sys.modules if m.startswith('epcheck.generators.')}\n"
        "print(sorted(loaded - set(light)))\n"
    )
    command = [sys.executable, "-P", "-c", code]
    assert subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip() == "[]"
