"""Names of operators, adapters and cases that a stranger chose, in the files of a site."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from epcheck import api
from tests.reports.hostile_names import DANGEROUS, NAMES, Tags
from tests.reports.stored_nights import keep
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, an_opinion

CHOSEN = [name.encode("utf-8", "replace").decode() for name in NAMES.values()]
"""Parquet takes no half of a surrogate pair."""


def a_site(folder: Path, names: list[str]) -> dict[str, str]:
    """File name -> text, of the site of a store with these operators, all in one run on an adapter of such a name."""
    folder.mkdir()
    facts = {"execution_provider": names[0], "adapter": names[1], "onnxruntime": names[2], "driver": names[3]}
    records = []
    for number, name in enumerate(names):
        made = a_wrong_slice(reason=name, candidate=an_opinion("dml", name, "mismatch", message=name))
        case = replace((made if number % 2 else a_slice("int8", "a")).case, operator=name, case_id=f"{number} {name}")
        records.append(replace(made if number % 2 else a_slice("int8", "a"), case=case))
    keep(folder / "store", a_run(run_id="run-1", candidates=("dml",), targets={"dml": facts}), records)
    api.site(api.SiteOptions(store=folder / "store", out=folder / "out"))
    files = [path for path in (folder / "out").rglob("*") if path.suffix in (".html", ".json", ".md")]
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def test_a_site_has_the_elements_that_it_has_with_harmless_names(tmp_path: Path) -> None:
    hostile = a_site(tmp_path / "hostile", CHOSEN)
    harmless = a_site(tmp_path / "harmless", [f"harmless{number}" for number in range(len(CHOSEN))])
    pages = [Tags(files["index.html"]) for files in (hostile, harmless)]
    assert pages[0].elements == pages[1].elements
    assert not pages[0].handlers
    assert not any(map(DANGEROUS.search, hostile.values()))
    assert sorted(hostile) == sorted(harmless)
