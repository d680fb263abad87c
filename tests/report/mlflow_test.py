"""A run's metrics in MLflow, read back by its client. Exit code 77: it is not installed."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from unittest import main, mock

from run_case import RunTest
from sample_run import STARTED_MS, metrics_lines, run_document, write_document
from trireme.export.command import export
from trireme.export.exported_run import ExportedRun
from trireme.export.history import History, News
from trireme.export.mlflow import MlflowWriter
from trireme.export.writer import ExportError
from trireme.report.fields import Notes

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
try:
    import mlflow
    from mlflow.entities import Run

    importlib.import_module("sqlalchemy")
except ModuleNotFoundError as missing:
    print(f"[  SKIPPED ] report/mlflow: requirements-judges.txt is not installed: {missing}")
    sys.exit(77)


class MlflowTest(RunTest):
    def setUp(self) -> None:
        super().setUp()
        self.uri = f"sqlite:///{self.folder.parent}/mlflow.db"
        self.texts = Notes()

    def export(self, writer: MlflowWriter) -> str:
        (written,) = export(self.folder, [writer], False, self.texts)
        return written

    def client(self) -> mlflow.MlflowClient:
        return mlflow.MlflowClient(tracking_uri=self.uri)

    def run_of(self, experiment: str) -> Run:
        """The only one there that was not deleted."""
        client = self.client()
        found = client.get_experiment_by_name(experiment)
        (run,) = client.search_runs([found.experiment_id])
        return run

    def points(self, run: Run, name: str) -> dict[int, tuple[float, int]]:
        """Value and time by step; that of one step twice is an error."""
        points = self.client().get_metric_history(run.info.run_id, name)
        found = {point.step: (point.value, point.timestamp) for point in points}
        self.assertEqual(len(found), len(points), f"{name} has a step twice")
        return found

    def test_all_lines_are_there_once_and_the_later_counts(self) -> None:
        written = self.export(MlflowWriter(self.uri, "tests"))
        run = self.run_of("tests")
        self.assertEqual(
            written, f"run {run.info.run_id} of MLflow's experiment tests written to {self.uri}"
        )
        lines = metrics_lines()
        steps = {line["step"]: line for line in lines if "loss" in line}
        for name in ("loss", "step_ms", "learning_rate"):
            trained = {step: (line[name], line["time_ms"]) for step, line in steps.items()}
            self.assertEqual(self.points(run, f"train/{name}"), trained)
        evaluated = {
            line["step"]: (line["evaluation"]["loss"], line["time_ms"])
            for line in lines
            if "evaluation" in line
        }
        self.assertEqual(self.points(run, "evaluation/loss"), evaluated)
        self.assertEqual(self.texts.texts, [])

    def test_what_is_said_of_the_run(self) -> None:
        self.export(MlflowWriter(self.uri, None))
        run = self.run_of("Default")
        options = run_document()["options"]
        self.assertEqual(run.data.params, {"model": "t5", **options})
        self.assertEqual((run.info.run_name, run.info.status), ("run", "FINISHED"))
        self.assertEqual(run.info.start_time, STARTED_MS)
        self.assertEqual(run.info.end_time, metrics_lines()[-1]["time_ms"])
        self.assertEqual(run.data.tags["trireme.folder"], str(self.folder.resolve()))

    def test_a_run_that_was_stopped_or_goes_on(self) -> None:
        for ended, status in (("stopped", "KILLED"), ("unknown", "RUNNING")):
            document = run_document()
            document["segments"][-1] |= {"ended": ended, "stopped_at": 140}
            if ended == "unknown":
                del document["segments"][-1]["stopped_at"]
            write_document(self.folder / "run.json", "run", document)
            self.export(MlflowWriter(self.uri, ended))
            self.assertEqual(self.run_of(ended).info.status, status)
        self.assertEqual(self.texts.texts, ["the run has not ended: MLflow has it as running"])

    def test_losses_that_are_not_finite_and_odd_names(self) -> None:
        by_name = {"top1, in %": 3.0}
        self.append('{"step":150,"loss":null,"time_ms":1}\n')
        line = {"step": 151, "loss": 1.0, "by_name": by_name, "time_ms": STARTED_MS}
        self.append(json.dumps(line) + "\n")
        self.export(MlflowWriter(self.uri, None))
        run = self.run_of("Default")
        self.assertTrue(math.isnan(self.points(run, "train/loss")[150][0]))
        self.assertEqual(self.points(run, "train/top1_ in _"), {151: (3.0, STARTED_MS)})

    def test_steps_that_are_trained_again_while_it_follows(self) -> None:
        lines = [{"step": step, "loss": 1.0, "time_ms": 1} for step in range(10)]
        again = [{"step": step, "loss": 2.0, "time_ms": 2} for step in range(6, 8)]
        texts = ["".join(json.dumps(line) + "\n" for line in some) for some in (lines, again)]
        (self.folder / "metrics.jsonl").write_text("")
        document = run_document()
        document["segments"][-1]["ended"] = "unknown"
        write_document(self.folder / "run.json", "run", document)
        writer = MlflowWriter(self.uri, None)
        write = writer.write

        def write_and_go_on(run: ExportedRun, history: History, news: News) -> None:
            write(run, history, news)
            if texts:
                self.append(texts.pop(0))
            if not texts:
                write_document(self.folder / "run.json", "run", run_document())

        with (
            mock.patch.object(writer, "write", write_and_go_on),
            mock.patch("trireme.export.command._LOOK_S", 0.02),
        ):
            export(self.folder, [writer], True, self.texts)
        values = self.points(self.run_of("Default"), "train/loss")
        self.assertEqual(values, {step: (1.0, 1) for step in range(6)} | {6: (2.0, 2), 7: (2.0, 2)})

    def test_a_place_that_is_none_is_said(self) -> None:
        with self.assertRaisesRegex(ExportError, "MLflow at no-such-scheme://x"):
            self.export(MlflowWriter("no-such-scheme://x", None))


del RunTest

if __name__ == "__main__":
    main()
