"""Ranks that read samples for those that train."""

from pathlib import Path

import programs


def test_readers_change_no_bits_and_read_all(tmp_path: Path) -> None:
    found = []
    for readers in (0, 1):
        folder = tmp_path / str(readers)
        folder.mkdir()
        found.append(programs.result_of("reader_program.py", str(readers), str(folder)))
    without, with_readers = found
    assert len(without["first"]["losses"]) == 5
    assert without["first"] == without["second"]
    assert with_readers["first"] == without["first"]
    assert with_readers["second"] == without["first"]
    steps = 2 * 5 * 16
    assert all(made >= steps for made in without["made"].values())
    # A rank that trains makes some to know their form.
    made = with_readers["made"]
    assert made["0"] + made["1"] < 32
    assert made["2"] >= 2 * steps
