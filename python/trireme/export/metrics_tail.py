"""Reads metrics.jsonl as it grows."""

from __future__ import annotations

from pathlib import Path

from trireme.export.history import History
from trireme.report.fields import Notes
from trireme.report.metrics import note_unreadable, parse_line


class MetricsTail:
    """Each call of `read` adds what has come since to `history`. Half a line is left for later."""

    def __init__(self, path: Path) -> None:
        self.history = History()
        self._path = path
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.history.clear()
        self._first = b""  # line: another one where the run has begun anew
        self._read = 0  # bytes
        self._num_lines = 0
        self._unreadable: list[int] = []
        self._rest = b""

    def read(self, notes: Notes) -> None:
        """A file that is not there yet holds nothing. Raises OSError."""
        try:
            with self._path.open("rb") as file:
                if file.read(len(self._first)) != self._first:
                    self._begin_anew()
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return
        whole, newline, self._rest = new.rpartition(b"\n")
        self._read += len(whole) + len(newline)
        if newline and not self._first:
            self._first = whole.split(b"\n", 1)[0] + newline
        for line in whole.split(b"\n") if newline else []:
            self._add(line.decode(errors="replace"), notes)

    def _add(self, text: str, notes: Notes) -> None:
        self._num_lines += 1
        if not text.strip():
            return
        line = parse_line(text, f"{self._path.name} line {self._num_lines}", notes)
        if line is None:
            self._unreadable.append(self._num_lines)
        else:
            self.history.add(line)

    def finish(self, notes: Notes) -> None:
        """Says what could not be read."""
        note_unreadable(self._path.name, self._unreadable, notes)
        if self._rest:
            notes.add(f"{self._path.name} ends in the middle of a line, which is left out")
        if not self._num_lines:
            notes.add(f"{self._path.name} holds no lines: no losses, no times of steps")
