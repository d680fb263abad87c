"""What writers know of a run beside its metrics: run.json and best.json."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
from dataclasses import dataclass
from pathlib import Path

from trireme.report.documents import NoDocument, read_document
from trireme.report.fields import Fields, Notes
from trireme.report.run import Segment, read_run_document, read_segments


@dataclass(frozen=True)
class ExportedRun:
    """As it was before its metrics were read: where it had ended, they are whole.

    given        options of the last start, as the program has them; empty for a run of another program
    is_running   a process trains there
    """

    folder: Path
    model: str
    options: dict[str, str]
    given: dict[str, list[str]]
    seed: int | None
    batch: Fields
    segments: list[Segment]
    best: Fields | None  # best.json, if there is one
    is_running: bool

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def started_ms(self) -> int | None:
        """When the first segment was started, since 1970."""
        text = self.segments[0].started if self.segments else ""
        with contextlib.suppress(ValueError):
            return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)
        return None

    def has_ended(self) -> bool:
        """With its last evaluation. One that was killed has not: it may be started again."""
        return bool(self.segments) and self.segments[-1].is_done and not self.is_running

    def was_stopped(self) -> bool:
        """Before its last step, as it was asked to."""
        return self.has_ended() and self.segments[-1].stopped_at is not None


def read_exported_run(folder: Path, notes: Notes) -> ExportedRun:
    """Raises NotARun."""
    document = read_run_document(folder, notes)
    given = document.child("given")
    best = None
    if (folder / "best.json").exists():
        try:
            best = read_document(folder / "best.json", "trireme.best", notes)
        except NoDocument as error:
            notes.add(str(error))
    return ExportedRun(
        folder,
        document.text("model") or "unnamed model",
        document.child("options").all_texts(),
        {name: given.texts(name) for name in given.names()},
        document.whole("seed"),
        document.child("batch"),
        read_segments(document),
        best,
        _is_locked(folder / "lock"),
    )


def _is_locked(path: Path) -> bool:
    """A run holds its lock until its process ends, after the last evaluation."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no such file, or a file system without locks
    return False
