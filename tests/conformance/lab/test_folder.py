import sys
from pathlib import Path

import pytest

from epcheck.conformance import lab
from epcheck.conformance.lab.folder import Config, Layout, size

linux = pytest.mark.skipif(sys.platform == "win32", reason="the lab is for Linux")


def test_the_environment_names_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EPCHECK_LAB", str(tmp_path))
    assert lab.default_folder() == tmp_path
    monkeypatch.delenv("EPCHECK_LAB")
    assert (lab.default_folder().name, "epcheck" in lab.default_folder().parts) == ("lab", True)


def test_remove_refuses_a_folder_that_is_not_a_lab(tmp_path: Path) -> None:
    kept = tmp_path / "thesis.txt"
    kept.write_text("years of work")
    with pytest.raises(lab.LabError, match=r"is not a lab; nothing was removed"):
        lab.remove(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@linux
def test_remove_takes_all_of_a_lab_and_says_how_much(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "lab")
    layout.folder.mkdir()
    layout.mark(Config())
    (layout.folder / "home").mkdir()
    (layout.folder / "home/cache").write_bytes(bytes(5000))
    (layout.folder / "outside").symlink_to(tmp_path)
    assert lab.remove(layout.folder) > 5000
    assert not layout.folder.exists()
    assert tmp_path.exists()


def test_install_refuses_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(lab.LabError, match=r"holds something else and is not a lab; name an empty or new folder"):
        Layout(tmp_path).refuse_foreign()


def test_a_lab_remembers_what_was_chosen(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    chosen = Config("/opt/wine/bin/wine64", "/opt/wine/bin/wineserver", "/etc/vulkan/icd.d/nvidia_icd.json")
    layout.mark(chosen)
    assert layout.config() == chosen


def test_a_lab_of_another_format_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text('{"epcheck_lab": 0}')
    with pytest.raises(lab.LabError, match="is of another version of epcheck; run: epcheck lab remove, then install"):
        Layout(tmp_path).config()


@linux
@pytest.mark.parametrize("text", ["", "{", "\0", '{"epcheck_lab": 1, "vulkan": 3}', "[" * 100_000], ids=str.__len__)
def test_a_lab_whose_mark_is_damaged_says_what_to_do_and_can_be_removed(tmp_path: Path, text: str) -> None:
    layout = Layout(tmp_path / "lab")
    layout.folder.mkdir()
    layout.marker.write_text(text)
    with pytest.raises(lab.LabError, match=r"lab\.json is damaged; run: epcheck lab remove, then install"):
        layout.config()
    assert not lab.status(layout.folder).installed
    lab.remove(layout.folder)
    assert not layout.folder.exists()


@linux
def test_size_counts_files_once_and_links_as_themselves(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/data").write_bytes(bytes(1000))
    (tmp_path / "link").symlink_to("a/data")
    assert size(tmp_path) == 1000 + len("a/data")
    assert size(tmp_path / "absent") == 0
