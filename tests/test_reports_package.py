"""`epcheck.reports` as a package: cheap to import, and complete."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from epcheck import reports

ROOT = Path(__file__).parents[1]


def test_what_examines_a_model_loads_no_pyarrow() -> None:
    script = (
        "import sys, epcheck.cli.commands.models.validate, epcheck.api.models.examining.examiner\n"
        "print(sorted({'pyarrow', 'duckdb', 'onnx.reference'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists_and_is_known_to_type_checkers() -> None:
    tree = ast.parse((ROOT / "reports" / "__init__.py").read_text(encoding="utf-8"))
    (checking,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.name for node in checking.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(reports.__all__) <= set(dir(reports))
    assert [name for name in reports.__all__ if getattr(reports, name) is None] == []


def test_a_name_that_it_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'epcheck\.reports' has no attribute 'walk'"):
        _ = reports.walk
