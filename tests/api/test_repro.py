"""Cases whose generator fails: the run's report is written, and a reproduction says why there is none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from epcheck import api
from epcheck.api.runs.archive import archive
from epcheck.conformance.test_data.repro import ReproError
from epcheck.generators import suite

CASE = "Slice-13/float32/steps_omitted[runtime]"


def test_a_page_has_no_archive_of_a_case_that_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive(CASE)
    assert archive("Slice-13/float32/no_such_sample[runtime]") is None
    monkeypatch.setattr(suite, "case_by_id", broken)
    assert archive(CASE) is None


def test_a_case_that_cannot_be_built_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(suite, "case_by_id", broken)
    with pytest.raises(ReproError, match=r"^case 'broken' cannot be built: ArithmeticError: no$"):
        api.repro(api.ReproOptions(CASE, tmp_path / "repro"))
    assert not (tmp_path / "repro").exists()


def broken(_case_id: str) -> SimpleNamespace:
    def build() -> None:
        raise ArithmeticError("no")

    return SimpleNamespace(id="broken", build=build)
