"""A run's metrics in TensorBoard, read back by its own reader. Exit code 77: it is not installed."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from operator import itemgetter
from typing import Any
from unittest import mock

from export_case import ExportCase, once, text_of
from sample_run import STARTED_MS, Document, metrics_lines, run_document
from trireme.export.command import export
from trireme.export.exported_run import ExportedRun
from trireme.export.history import Change, History, News
from trireme.export.tensorboard import TensorBoardWriter
from trireme.export.writer import Writer
from trireme.report.fields import Notes
from trireme.report.metrics import Evaluation, Step

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ModuleNotFoundError as missing:
    print(f"[  SKIPPED ] report/tensorboard: requirements-python.txt is not installed: {missing}")
    sys.exit(77)


class HistoryTest(unittest.TestCase):
    """(steps, evaluations) that are taken: where they are rewritten from, and their steps."""

    def taken(self, history: History) -> list[tuple[int | None, list[int]] | None]:
        news = history.take()
        changes: list[Change[Any] | None] = [news.steps, news.evaluations]
        return [
            None if one is None else (one.rewritten_from, [line.step for line in one.lines])
            for one in changes
        ]

    def test_each_line_is_taken_once(self) -> None:
        history = History()
        self.assertEqual(self.taken(history), [None, None])
        for line in (Evaluation(0, 3.0), Step(0, 3.0), Step(1, 2.0)):
            history.add(line)
        self.assertEqual(self.taken(history), [(None, [0, 1]), (None, [0])])
        history.add(Step(2, 1.0))
        self.assertEqual(self.taken(history), [(None, [2]), None])
        self.assertEqual(self.taken(history), [None, None])

    def test_what_was_not_taken_is_no_rewriting(self) -> None:
        history = History()
        for step in (0, 1, 2, 1, 2, 3):
            history.add(Step(step, 1.0))
        self.assertEqual(self.taken(history), [(None, [0, 1, 2, 3]), None])

    def test_evaluations_beyond_the_step_that_comes_again_are_void(self) -> None:
        history = History()
        for step in range(4):
            history.add(Step(step, 1.0))
            history.add(Evaluation(step + 1, 1.0))
        self.taken(history)
        history.add(Step(2, 5.0))  # the checkpoint of two steps
        self.assertEqual(self.taken(history), [(2, [2]), (3, [])])
        self.assertEqual(sorted(history.evaluations.lines), [1, 2])
        self.assertEqual(history.steps.lines[2].loss, 5.0)

    def test_a_run_that_begins_anew_is_rewritten_from_its_first_step(self) -> None:
        history = History()
        for step in range(3):
            history.add(Step(step, 1.0))
        self.taken(history)
        history.clear()
        self.assertEqual(self.taken(history), [(0, []), None])
        history.add(Step(0, 1.0))
        self.assertEqual(self.taken(history), [(None, [0]), None])

    def test_an_earlier_evaluation_that_comes_late_keeps_later_ones(self) -> None:
        history = History()
        history.add(Evaluation(2, 1.0))
        history.add(Evaluation(6, 1.0))
        self.taken(history)
        history.add(Evaluation(4, 1.0))
        self.assertEqual(self.taken(history), [None, (4, [4, 6])])


class TensorBoardTest(ExportCase):
    def scalars(self, series: str) -> dict[str, dict[int, tuple[float, float]]]:
        """Value and time by step, as TensorBoard reads them; that of one step twice is an error."""
        reader = EventAccumulator(str(self.out / series), size_guidance={"scalars": 0})
        reader.Reload()
        found: dict[str, dict[int, tuple[float, float]]] = {}
        for tag in reader.Tags()["scalars"]:
            events = reader.Scalars(tag)
            found[tag] = {event.step: (event.value, event.wall_time) for event in events}
            self.assertEqual(len(found[tag]), len(events), f"{tag} has a step twice")
        return found

    def export(self) -> list[str]:
        return export(self.folder, [TensorBoardWriter(self.out)], False, self.texts)

    def check(self, series: str, tag: str, value: Callable[[Document], float]) -> None:
        expected = once(metrics_lines())[series]
        found = self.scalars(series)[tag]
        self.assertEqual(sorted(found), sorted(expected))
        for step, line in expected.items():
            self.assertAlmostEqual(found[step][0], value(line), delta=1e-6 * abs(value(line)))
            self.assertEqual(round(found[step][1] * 1000), line["time_ms"])

    def test_all_lines_are_there_once_and_the_later_counts(self) -> None:
        written = self.export()
        self.assertEqual(written, [f"events of TensorBoard written to {self.out}"])
        for name in ("loss", "step_ms", "learning_rate", "gradient_norm", "samples_per_s"):
            self.check("train", name, itemgetter(name))
        self.check("evaluation", "loss", lambda line: line["evaluation"]["loss"])
        self.check("evaluation", "evaluation_ms", lambda line: line["evaluation_ms"])

    def test_an_export_takes_the_place_of_an_earlier_one(self) -> None:
        self.export()
        self.export()
        self.check("train", "step_ms", lambda line: line["step_ms"])
        self.check("evaluation", "loss", lambda line: line["evaluation"]["loss"])

    def test_losses_by_name(self) -> None:
        by_name: Document = {"loss": 2.0, "top1": 0.5}
        other = {"loss": 1.5, "step_ms": 7.0}
        self.write_lines(
            [
                {"step": 0, "loss": 2.0, "by_name": by_name, "time_ms": 1},
                {"step": 1, "loss": 2.0, "by_name": other, "time_ms": 2},
                {"step": 2, "loss": None, "time_ms": 3},
            ]
        )
        self.export()
        found = self.scalars("train")
        self.assertEqual(sorted(found), ["loss", "part/loss", "part/step_ms", "top1"])
        self.assertEqual(found["top1"], {0: (0.5, 0.001)})
        self.assertEqual(found["part/loss"], {1: (1.5, 0.002)})
        self.assertTrue(math.isnan(found["loss"][2][0]))

    def test_options_are_hyperparameters(self) -> None:
        from tensorboard.plugins.hparams import metadata

        self.export()
        reader = EventAccumulator(str(self.out / "train"))
        reader.Reload()
        (content,) = reader.PluginTagToContent("hparams").values()
        options = metadata.parse_session_start_info_plugin_data(content).hparams
        self.assertEqual(options["layers"].number_value, 4)
        self.assertEqual(options["corpus"].string_value, "<text & more>")
        self.assertEqual(options["model"].string_value, "t5")

    def test_lines_without_a_time_are_said(self) -> None:
        self.write_lines([{"step": 0, "loss": 1.0}, {"step": 1, "loss": 1.0, "time_ms": 5000}])
        self.export()
        self.assertEqual(self.scalars("train")["loss"], {0: (1.0, 0.0), 1: (1.0, 5.0)})
        self.assertIn("1 lines of metrics.jsonl have no time_ms", self.texts.texts[0])

    def test_half_a_line_and_noise_are_left_out(self) -> None:
        self.append('noise\n{"step":150,"lo')
        self.export()
        self.check("train", "loss", lambda line: line["loss"])
        self.assertEqual(len(self.texts.texts), 2)
        self.assertIn("1 lines are unreadable and left out (170)", self.texts.texts[0])
        self.assertIn("ends in the middle of a line", self.texts.texts[1])

    def test_a_run_without_lines_is_said(self) -> None:
        for text in ("", None):
            self.metrics.write_text("") if text == "" else self.metrics.unlink()
            self.texts = Notes()
            self.export()
            self.assertIn("metrics.jsonl holds no lines", self.texts.texts[0])


class FollowTest(TensorBoardTest):
    """The same tests, of runs whose lines come while they are read, and a few of their own."""

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch("trireme.export.command._LOOK_S", 0.02))

    def export(self) -> list[str]:
        """Of a run that writes its lines in three goes, the first two ending within one."""
        text = self.metrics.read_text() if self.metrics.exists() else ""
        self.metrics.write_text("")
        writer = TensorBoardWriter(self.out)
        cuts = [len(text) * 2 // 5 + 3, len(text) * 4 // 5 + 3, len(text)]
        return self.follow(writer, [text[a:b] for a, b in zip([0, *cuts], cuts, strict=False)])

    def follow(self, writer: Writer, parts: list[str], *others: Writer) -> list[str]:
        """Appends a part after each look; the run is there until the last has come."""
        remaining = list(parts)
        finished = run_document()["segments"]
        self.change_run(segments=finished[:2])
        write = writer.write

        def write_and_go_on(run: ExportedRun, history: History, news: News) -> None:
            write(run, history, news)
            if remaining:
                self.append(remaining.pop(0))
            if not remaining:
                self.change_run()

        with mock.patch.object(writer, "write", write_and_go_on):
            # In another thread signals cannot be taken; nothing asks for an end there.
            written = export(self.folder, [*others, writer], True, self.texts)[-1:]
        self.assertEqual(remaining, [])
        return written

    def test_steps_that_are_trained_again_take_the_place_of_those_that_were_read(self) -> None:
        lines: list[Document] = [{"step": step, "loss": 1.0, "time_ms": 1} for step in range(10)]
        lines += [{"step": 10, "evaluation": {"loss": 1.0}, "time_ms": 1}]
        again = [{"step": step, "loss": 2.0, "time_ms": 2} for step in range(6, 8)]
        self.metrics.write_text("")
        self.follow(TensorBoardWriter(self.out), [text_of(lines), text_of(again)])
        found = self.scalars("train")["loss"]
        self.assertEqual([found[step][0] for step in sorted(found)], [1.0] * 6 + [2.0] * 2)
        self.assertEqual(self.scalars("evaluation"), {"loss": {}})

    def test_each_of_several_writers_gets_all(self) -> None:
        text = self.metrics.read_text()
        self.metrics.write_text("")
        other = TensorBoardWriter(self.folder.parent / "other")
        self.follow(TensorBoardWriter(self.out), [text[:9999], text[9999:]], other)
        self.check("train", "step_ms", itemgetter("step_ms"))
        self.out = self.folder.parent / "other"
        self.check("train", "step_ms", itemgetter("step_ms"))

    def test_a_run_that_begins_anew_in_the_folder_is_read_from_its_beginning(self) -> None:
        self.metrics.write_text("")
        first = text_of({"step": step, "loss": 1.0, "time_ms": 1} for step in range(5))
        second = text_of({"step": step, "loss": 2.0, "time_ms": 2} for step in range(9))
        appended = self.append

        def append(text: str) -> None:
            if text is second:
                self.metrics.write_text("")
            appended(text)

        with mock.patch.object(self, "append", append):
            self.follow(TensorBoardWriter(self.out), [first, second])
        found = self.scalars("train")["loss"]
        self.assertEqual(
            {step: value for step, (value, _) in found.items()}, dict.fromkeys(range(9), 2.0)
        )

    def test_it_waits_for_what_comes_between_the_last_step_and_the_end_of_the_process(self) -> None:
        import fcntl

        last = {"step": 150, "evaluation": {"loss": 0.25}, "time_ms": STARTED_MS + 10**6}
        lock = (self.folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)

        def end() -> None:
            time.sleep(0.3)
            self.write_lines([last], mode="a")
            lock.close()

        thread = threading.Thread(target=end)
        thread.start()
        export(self.folder, [TensorBoardWriter(self.out)], True, self.texts)
        thread.join()
        self.assertEqual(self.scalars("evaluation")["loss"][150][0], 0.25)

    def test_a_signal_ends_it_and_what_was_read_is_whole(self) -> None:
        self.change_run(segments=run_document()["segments"][:2])
        words = ["--tensorboard", str(self.out), "--follow", "--json"]
        command = [sys.executable, "-m", "trireme.report", *words, str(self.folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not list(self.out.glob("evaluation/*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(
            json.loads(said)["written"], [f"events of TensorBoard written to {self.out}"]
        )
        self.check("train", "loss", lambda line: line["loss"])


del ExportCase

if __name__ == "__main__":
    for name in ("", "tensorboard"):
        logging.getLogger(name).setLevel(logging.ERROR)  # warnings are of what is expected here
    unittest.main()
