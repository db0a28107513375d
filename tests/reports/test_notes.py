"""Notes are folded by what they say, and none is lost in the count."""

from epcheck.reports.notes import FoldedNote, fold_notes

SIGNAL = "dml: the worker ended with signal 11 near Slice-13/float32/{}[runtime]; pid {}"


def test_notes_that_differ_by_case_and_number_are_one_with_a_count() -> None:
    notes = [SIGNAL.format("rank_3", 411), "the cache is new", SIGNAL.format("ties", 7), SIGNAL.format("a_b", 9)]
    assert fold_notes(notes) == (FoldedNote("the cache is new", 1), FoldedNote(notes[0], 3))
    assert [str(note) for note in fold_notes(notes)] == ["the cache is new", f"{notes[0]} (and 2 more like it)"]


def test_other_words_are_another_note() -> None:
    assert [note.count for note in fold_notes(["a worker hung", "a worker crashed"])] == [1, 1]
    assert fold_notes([]) == ()
