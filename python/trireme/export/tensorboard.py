"""Event files of TensorBoard: curves of steps in FOLDER/train, of evaluations in FOLDER/evaluation.

Both have the same names, so that the board draws a loss of both into one chart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trireme.export.exported_run import ExportedRun
from trireme.export.history import Change, History, News
from trireme.export.mlperf_values import number_or_text
from trireme.export.writer import EVALUATION, TRAIN, points_of
from trireme.report.fields import Notes


class TensorBoardWriter:
    """What is written into a folder takes the place of what an earlier export wrote there."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._events: Any = event_pb2
        self._summaries: Any = summary_pb2
        self._hparams = summary_v2.hparams_pb
        self._open = EventFileWriter
        self._folder = folder
        self._files: dict[str, Any] = {}

    def write(self, run: ExportedRun, history: History, news: News) -> None:
        """Values are f32 there."""
        if not self._files:
            for name in (TRAIN, EVALUATION):
                self._files[name] = self._open(str(self._folder / name))
                self._void(name, 0)
            self._write_options(run)
        self._write_change(TRAIN, news.steps)
        self._write_change(EVALUATION, news.evaluations)

    def finish(self, run: ExportedRun, history: History, notes: Notes) -> str:
        for file in self._files.values():
            file.close()
        return f"events of TensorBoard written to {self._folder}"

    def _write_options(self, run: ExportedRun) -> None:
        """For its tab HPARAMS."""
        options = {name: number_or_text(text) for name, text in run.options.items()}
        wall_time = (run.started_ms() or 0) / 1000
        summary = self._hparams(
            {"model": run.model, **options}, trial_id=run.name, start_time_secs=wall_time
        )
        self._files[TRAIN].add_event(self._events.Event(wall_time=wall_time, summary=summary))

    def _void(self, name: str, step: int) -> None:
        """Readers forget what they have read of this step and later ones."""
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._files[name].add_event(self._events.Event(step=step, session_log=start))

    def _write_change(self, name: str, change: Change[Any] | None) -> None:
        if change is None:
            return
        if change.rewritten_from is not None:
            self._void(name, change.rewritten_from)
        for line in change.lines:
            values = [
                self._summaries.Summary.Value(tag=point.name, simple_value=point.value)
                for point in points_of(line)
            ]
            self._files[name].add_event(
                self._events.Event(
                    wall_time=(line.time_ms or 0) / 1000,
                    step=line.step,
                    summary=self._summaries.Summary(value=values),
                )
            )
        self._files[name].flush()
