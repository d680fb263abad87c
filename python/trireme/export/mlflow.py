"""A run of MLflow: metrics by step, the run's options as parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from trireme.export.exported_run import ExportedRun
from trireme.export.history import Change, History, News
from trireme.export.writer import EVALUATION, TRAIN, ExportError, points_of
from trireme.report.fields import Notes
from trireme.report.metrics import Evaluation, Step

_MOST_METRICS = 1000  # of a call, as servers have it
_MOST_PARAMETERS = 100


class MlflowWriter:
    """Makes a run of MLflow, which cannot replace what it has logged.

    Where steps are trained again that are there already, another run takes its place.
    """

    def __init__(self, uri: str, experiment: str | None) -> None:
        import mlflow
        from mlflow.exceptions import MlflowException

        self._mlflow: Any = mlflow
        self._error: type[Exception] = MlflowException
        self._uri = uri
        self._experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
        self._client: Any = None
        self._id = ""

    def write(self, run: ExportedRun, history: History, news: News) -> None:
        try:
            self._write(run, history, news)
        except self._error as error:
            raise ExportError(f"MLflow at {self._uri}: {error}{_hint(self._uri)}") from error

    def finish(self, run: ExportedRun, history: History, notes: Notes) -> str:
        last_ms = max((line.time_ms or 0 for line in history.lines()), default=0)
        if run.has_ended():
            status = "KILLED" if run.was_stopped() else "FINISHED"
            try:
                self._client.set_terminated(self._id, status, end_time=last_ms)
            except self._error as error:
                raise ExportError(f"MLflow at {self._uri}: {error}") from error
        else:
            notes.add("the run has not ended: MLflow has it as running")
        return f"run {self._id} of MLflow's experiment {self._experiment} written to {self._uri}"

    def _write(self, run: ExportedRun, history: History, news: News) -> None:
        if not self._id or _is_rewritten(news.steps) or _is_rewritten(news.evaluations):
            if self._id:
                self._client.delete_run(self._id)
            self._begin(run)
            self._log(TRAIN, history.steps.lines.values())
            self._log(EVALUATION, history.evaluations.lines.values())
        else:
            self._log(TRAIN, news.steps.lines if news.steps else [])
            self._log(EVALUATION, news.evaluations.lines if news.evaluations else [])

    def _begin(self, run: ExportedRun) -> None:
        if self._client is None:
            self._client = self._mlflow.MlflowClient(tracking_uri=self._uri)
        found = self._client.get_experiment_by_name(self._experiment)
        experiment = (
            found.experiment_id if found else self._client.create_experiment(self._experiment)
        )
        tags = {"trireme.folder": str(run.folder.resolve()), "mlflow.source.name": "trireme"}
        made = self._client.create_run(
            experiment, start_time=run.started_ms(), tags=tags, run_name=run.name
        )
        self._id = made.info.run_id
        options = {"model": run.model, **run.options}
        parameters = [
            self._mlflow.entities.Param(_allowed(name), text) for name, text in options.items()
        ]
        for begin in range(0, len(parameters), _MOST_PARAMETERS):
            self._client.log_batch(self._id, params=parameters[begin : begin + _MOST_PARAMETERS])

    def _log(self, series: str, lines: Iterable[Step | Evaluation]) -> None:
        metrics = [
            self._mlflow.entities.Metric(
                _allowed(f"{series}/{point.name}"), point.value, point.time_ms, point.step
            )
            for line in lines
            for point in points_of(line)
        ]
        for begin in range(0, len(metrics), _MOST_METRICS):
            self._client.log_batch(self._id, metrics=metrics[begin : begin + _MOST_METRICS])


def _is_rewritten(change: Change[Any] | None) -> bool:
    return change is not None and change.rewritten_from is not None


def _allowed(name: str) -> str:
    """MLflow refuses other characters."""
    return re.sub(r"[^\w\-. :/]", "_", name)


def _hint(uri: str) -> str:
    """mlflow-skinny talks to servers alone."""
    if re.match(r"https?:|databricks|uc:", uri):
        return ""
    return " (databases need the package mlflow; mlflow-skinny talks to servers)"
