"""The history of searches in a store: what is written is what is read, and a damaged file is one sentence."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from epcheck.api.fuzzing import history_file
from epcheck.api.fuzzing.history_file import HistoryError
from epcheck.generators.fuzzing import history as histories
from epcheck.generators.fuzzing.history import SearchHistory

HISTORY = SearchHistory(
    7, Counter({"Slice": 12, "com.microsoft::Gelu": 3}), dict.fromkeys([b"abcdef", b"\0\1\2\3\4\5"])
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = history_file.path_in(tmp_path, "cpu@1.20.1 level=all")
    assert path.parent == tmp_path
    assert history_file.read(path) == SearchHistory()
    history_file.write(path, HISTORY)
    assert history_file.read(path) == HISTORY
    assert list(history_file.read(path).nodes) == list(HISTORY.nodes)


def test_the_latest_nodes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history_file.write(tmp_path / "h.json", HISTORY)
    monkeypatch.setattr(history_file, "MOST_NODES", 1)
    assert list(history_file.read(tmp_path / "h.json").nodes) == [b"\0\1\2\3\4\5"]


@pytest.mark.parametrize(
    "fields", [{"schema": 2}, {"nodes": "QUJD"}, {"nodes": "!"}, {"turns": {"Slice": "x"}}, {"turns": 3}]
)
def test_a_damaged_file_is_one_sentence(fields: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    history_file.write(path, HISTORY)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **fields}), encoding="utf-8")
    with pytest.raises(HistoryError) as caught:
        history_file.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_other_files_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.json"
    for text in ("{", "[" * 100_000, '"x"', "\0"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(HistoryError, match="it cannot be read: "):
            history_file.read(path)
    monkeypatch.setattr(history_file, "MOST_BYTES", 2)
    path.write_text("{}  ", encoding="utf-8")
    with pytest.raises(HistoryError, match="it has more than 2 bytes"):
        history_file.read(path)


def test_numbers_of_a_stranger_give_no_more_than_the_lead(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    history_file.write(path, SearchHistory(1, Counter({"Slice": 10**18, "Relu": -(10**18)})))
    assert history_file.read(path).leads(["Slice", "Relu", "Conv"]) == {"Relu": histories.LEAD, "Conv": histories.LEAD}
