"""Ranks that read samples for those that train."""

from pathlib import Path

import programs


def test_readers_change_no_bits_and_read_all(tmp_path: Path) -> None:
    found = []
    for readers in (0, 2):
        folder = tmp_path / str(readers)
        folder.mkdir()
        found.append(programs.result_of("reader_program.py", str(readers), str(folder)))
    without, with_readers = found
    for name in ("losses", "evaluation", "weights"):
        assert with_readers[name] == without[name], name
    assert len(without["losses"]) == 5
    assert without["read"][0] == 0
    assert with_readers["read"] == [2, 3]
