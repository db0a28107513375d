"""`epcheck report`: files where they were asked for, one sentence and exit status 2 where that cannot be."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from epcheck.cli.main import app
from tests.reports.stored_records import a_run, a_slice, stored

OLDER, NEWER = "20250102-030405-beef", "20250102-030406-cafe"


def report(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_the_page_of_the_latest_run_is_made_in_its_folder(tmp_path: Path) -> None:
    for name in (OLDER, NEWER):
        stored(tmp_path / name, [a_slice()], a_run(1, run_id=name))
    result = report("--root", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / NEWER / 'report.html'}\n"
    assert NEWER in (tmp_path / NEWER / "report.html").read_text()


def test_every_report_goes_where_it_was_asked_for(tmp_path: Path) -> None:
    folder = stored(tmp_path / OLDER, [a_slice()])
    files = {name: tmp_path / f"out.{name}" for name in ("html", "junit", "json")}
    result = report(folder, *(part for name, path in files.items() for part in (f"--{name}", path)), "--parquet")
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(path) for path in (*files.values(), folder / "outcomes.parquet")]
    assert all(path.is_file() for path in files.values())


@pytest.mark.parametrize("damage", ["no root", "no run", "corrupt"])
def test_what_cannot_be_read_is_one_sentence_and_exit_status_2(tmp_path: Path, damage: str) -> None:
    arguments: tuple[object, ...] = ("--root", tmp_path / "nowhere")
    if damage == "no run":
        arguments = (tmp_path,)
    elif damage == "corrupt":
        folder = stored(tmp_path / OLDER, [a_slice()])
        (folder / "journal.jsonl").write_text("[bold]\n")
        arguments = (folder,)
    result = report(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("epcheck: ")
    assert result.stderr.count("\n") == 1
