"""What code decides a cached value: editing it drops the values, editing anything else keeps them."""

from __future__ import annotations

import ast
import pkgutil
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from epcheck.conformance.cache import cache, code_digest
from epcheck.conformance.cache.code_digest import MAKERS, ROOT, Sources
from epcheck.generators import operators

PREPARED, OPINION = "prepared", "opinion"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """What each file of a copy of the sources holds."""
    folder = tmp_path_factory.mktemp("sources")
    for package in ("generators", "conformance"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def sources(copied: dict[Path, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the sources, from which the keys come instead; afterwards it is what it was."""
    folder = next(path for path in next(iter(copied)).parents if (path / "generators").is_dir())
    monkeypatch.setattr(code_digest, "ROOT", folder)
    yield folder
    code_digest._code_digests.cache_clear()
    for path in folder.rglob("*"):
        if path.is_file() and path not in copied:
            path.unlink()
    for path, data in copied.items():
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def key_now(kind: str) -> bytes:
    """The key of always the same thing, in a process that starts now."""
    code_digest._code_digests.cache_clear()
    return cache.key(kind, "", "Slice-13/float32/inner_forward[runtime]")


def edit(file: Path) -> None:
    assert file.is_file()
    file.write_bytes(file.read_bytes() + b"\n")


DECIDE_CASES = [
    "generators/suite.py",
    "generators/data.py",
    "generators/operators/movement/slice.py",
    "generators/runtime_schemas.json",
    "conformance/preparation/prepared_case.py",
    "conformance/preparation/pack.py",
    "conformance/comparison/ulp.py",
    "conformance/records/opinion.py",
    "conformance/cache/row_groups.py",
    "conformance/cache/code_digest.py",
]
DECIDE_OPINIONS = [
    "conformance/judging/opinion.py",
    "conformance/judging/repeats.py",
    "conformance/judging/opinion_row.py",
    "conformance/workers/program/worker.py",
    "conformance/workers/program/backends/directml/device.py",
]
DECIDE_NOTHING = [
    "conformance/scheduling/case_scheduler.py",
    "conformance/scheduling/pools/pool.py",
    "conformance/cluster/cluster.py",
    "conformance/lab/install.py",
    "conformance/lab/packages/debian.json",
    "conformance/judging/coverage.py",
    "conformance/targets/case_globs.py",
    "conformance/expectations/cpu/movement.toml",
    "generators/oracle_math/reference.py",
]


@pytest.mark.parametrize("name", DECIDE_CASES)
def test_code_that_makes_cases_changes_the_keys_of_cases_and_opinions(sources: Path, name: str) -> None:
    before = key_now(PREPARED), key_now(OPINION)
    assert before == (key_now(PREPARED), key_now(OPINION))
    edit(sources / name)
    assert key_now(PREPARED) != before[0]
    assert key_now(OPINION) != before[1]


@pytest.mark.parametrize("name", DECIDE_OPINIONS)
def test_code_that_makes_opinions_changes_their_keys(sources: Path, name: str) -> None:
    before = key_now(OPINION)
    edit(sources / name)
    assert key_now(OPINION) != before


@pytest.mark.parametrize("name", ["conformance/judging/opinion.py", "conformance/judging/repeats.py"])
def test_judging_keeps_prepared_cases(sources: Path, name: str) -> None:
    before = key_now(PREPARED)
    edit(sources / name)
    assert key_now(PREPARED) == before


@pytest.mark.slow
def test_all_other_code_keeps_every_value(sources: Path) -> None:
    before = [key_now(kind) for kind in MAKERS]
    for name in DECIDE_NOTHING:
        edit(sources / name)
    assert [key_now(kind) for kind in MAKERS] == before


def test_a_new_operator_changes_the_keys_and_a_compiled_file_does_not(sources: Path) -> None:
    before = key_now(PREPARED)
    (sources / "generators/operators/movement/scatter.pyc").write_bytes(b"")
    assert key_now(PREPARED) == before
    (sources / "generators/operators/movement/another.py").write_bytes(b"")
    with_another = key_now(PREPARED)
    (sources / "generators/operators/movement/another.py").rename(sources / "generators/operators/movement/renamed.py")
    assert len({before, with_another, key_now(PREPARED)}) == 3


def test_a_module_that_is_newly_imported_counts(sources: Path) -> None:
    module, imported = sources / "conformance/comparison/exact.py", sources / "conformance/cluster/node.py"
    module.write_text(
        f"{module.read_text()}\n\ndef late():\n    from epcheck.conformance.cluster import (\n        node,\n    )\n"
    )
    before = key_now(PREPARED)
    edit(imported)
    assert key_now(PREPARED) != before


def test_a_maker_that_is_not_there_is_an_error(sources: Path) -> None:
    (sources / "conformance/preparation/prepared_case.py").unlink()
    with pytest.raises(LookupError, match=r"epcheck\.conformance\.preparation\.prepared_case"):
        key_now(PREPARED)


@pytest.mark.parametrize("package", ["onnx", "numpy", "ml-dtypes"])
@pytest.mark.usefixtures("sources")
def test_another_release_of_a_package_that_makes_cases_changes_the_keys(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, version = key_now(PREPARED), code_digest.version
    monkeypatch.setattr(code_digest, "version", lambda name: "99.0" if name == package else version(name))
    assert key_now(PREPARED) != before


@pytest.mark.parametrize("kind", MAKERS)
def test_every_module_of_the_operators_and_the_comparison_counts(kind: str) -> None:
    closure = Sources(ROOT).closure(MAKERS[kind])
    found = pkgutil.walk_packages(operators.__path__, f"{operators.__name__}.")
    comparison = (path.stem for path in (ROOT / "conformance/comparison").glob("[!_]*.py"))
    expected = {module.name.removeprefix("epcheck.") for module in found} | {
        f"conformance.comparison.{name}" for name in comparison
    }
    if kind == PREPARED:
        expected -= {"conformance.comparison.precision", "conformance.comparison.excused"}  # of a target's answer
    assert len(expected) > 60
    assert expected <= closure.keys()
    assert {
        "conformance.preparation.prepared_case",
        "conformance.preparation.pack",
        "generators.suite",
    } <= closure.keys()


@pytest.mark.parametrize("kind", MAKERS)
def test_what_only_orders_or_shows_the_work_does_not_count(kind: str) -> None:
    closure = Sources(ROOT).closure(MAKERS[kind])
    besides = ("cli", "api", "reports", "models", "conformance.lab", "conformance.scheduling", "conformance.cluster")
    assert [module for module in closure if f"{module}.".startswith(tuple(f"{name}." for name in besides))] == []


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("import epcheck.a.b", ["a.b"]),
        ("from epcheck import a", ["", "a"]),
        ("from epcheck.a import b, c as d", ["a", "a.b", "a.c"]),
        ("from epcheck.a import (\n    b,  # why\n    c,\n)", ["a", "a.b", "a.c"]),
        ("def f():\n    from epcheck.a import b", ["a", "a.b"]),
        ("from .b import c", ["generators.p.b", "generators.p.b.c"]),
        ("from . import c", ["generators.p", "generators.p.c"]),
        ("from ..b import c", ["generators.b", "generators.b.c"]),
        ("import numpy, onnx\nfrom pathlib import Path", []),
    ],
)
def test_imports_are_found_in_every_form(statement: str, modules: list[str], tmp_path: Path) -> None:
    (tmp_path / "generators/p").mkdir(parents=True)
    (tmp_path / "generators/p/m.py").write_text(statement)
    assert [*Sources(tmp_path)._find_imports("generators.p.m")] == ["generators.p", *modules]


def test_a_digest_takes_less_than_parsing_a_quarter_of_the_sources() -> None:
    """Measured in CPU time beside a known amount of work: the machine may be busy, or slow."""
    code_digest._code_digests.cache_clear()
    start = time.process_time()
    code_digest.code_digest(PREPARED)
    digested = time.process_time()
    for path in sorted((ROOT / "generators").rglob("*.py"))[::4]:
        ast.parse(path.read_bytes())
    assert digested - start < time.process_time() - digested
