"""The page about a run: what it says, and that it says so where something is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import IO
from unittest import mock

from run_case import RunTest, read_document
from sample_run import run_document, write_document
from trireme.report.documents import document_sha256
from trireme.report.figures.loss import loss_figure, parts_figure
from trireme.report.figures.memory import memory_figure
from trireme.report.figures.speed import reading_figure, step_time_figure, throughput_figure
from trireme.report.figures.timeline import timeline_figure
from trireme.report.page import page
from trireme.report.run import NotARun, read_run
from trireme.report.tables import overview
from trireme.report.write import write_atomically


class ReadingTest(RunTest):
    def test_steps_belong_to_the_segments_that_trained_them(self) -> None:
        ranges = [(one.steps[0].step, one.steps[-1].step) for one in self.read().segments]
        self.assertEqual(ranges, [(0, 49), (50, 87), (75, 149)])

    def test_a_killed_segment_ends_where_its_metrics_do(self) -> None:
        run = self.read()
        self.assertEqual([one.name() for one in run.segments][1], "steps 50 to 87")
        self.assertIn("training did not reach step 150", self.notes())
        self.assertAlmostEqual(run.segments[1].step_ms() or 0, 520, delta=20)

    def test_a_segment_that_was_killed_before_its_first_step_has_none(self) -> None:
        body = run_document()
        body["segments"] = body["segments"][:2]
        write_document(self.folder / "run.json", "run", body)
        lines = (self.folder / "metrics.jsonl").read_text().splitlines(keepends=True)
        (self.folder / "metrics.jsonl").write_text("".join(lines[:50]))
        segment = self.read().segments[1]
        self.assertEqual((segment.end(), segment.name()), (50, "steps from 50"))
        page(self.read())

    def test_steps_that_were_trained_again_are_compared(self) -> None:
        self.assertEqual(self.read().metrics.repeated(), (13, 13))

    def test_losses_that_are_not_finite_are_the_same(self) -> None:
        self.append(2 * '{"step":150,"loss":null}\n')
        self.assertEqual(self.read().metrics.repeated(), (14, 14))

    def test_a_placement_that_is_none_is_said(self) -> None:
        plan = read_document(self.folder / "plan-1.json")
        plan["roles"][0]["placement"][1] = "inf"
        (self.folder / "plan-1.json").write_text(json.dumps(plan))
        self.assertIn("field placement is no list of whole numbers", self.notes())
        segment = self.read().segments[0]
        assert segment.plan is not None
        self.assertEqual([stage.ranks for stage in segment.plan.stages], [[], []])

    def test_stages_of_a_v_shape_are_on_the_ranks_of_their_positions(self) -> None:
        plan = read_document(self.folder / "plan-1.json")
        plan["stages"] = [{**plan["stages"][0], "position": p} for p in (0, 1, 1, 0)]
        del plan["stages"][1]["position"]  # its index
        write_document(self.folder / "plan-1.json", "plan", plan)
        segment = self.read().segments[0]
        assert segment.plan is not None
        ranks = [stage.ranks for stage in segment.plan.stages]
        self.assertEqual(ranks, [[0, 1], [2, 3], [2, 3], [0, 1]])

    def test_checkpoints_are_listed_in_order(self) -> None:
        (self.folder / "checkpoints/step-7.partial").mkdir()
        (self.folder / "checkpoints/step-8").mkdir()
        self.assertEqual(self.read().checkpoints, [25, 50, 75, 100, 150])

    def test_a_line_that_was_cut_off_is_said(self) -> None:
        before = len(self.read().metrics.steps())
        self.append('{"step":150,"loss":2.')
        self.assertIn("ends in the middle of line 170", self.notes())
        self.assertEqual(len(self.read().metrics.steps()), before)

    def test_unreadable_lines_are_counted(self) -> None:
        self.append('noise\n{"step":150,"loss":2.0}\n[]\n{"step":"x"}\n' + "[" * 100_000 + "\n")
        self.assertIn("4 lines are unreadable and left out (170, 172, 173, 174)", self.notes())
        self.assertEqual(self.read().metrics.steps()[-1].step, 150)

    def test_a_loss_that_is_not_finite_is_said(self) -> None:
        self.append(
            '{"step":150,"loss":null}\n{"step":151,"loss":NaN}\n{"step":152,"loss":"inf"}\n'
        )
        self.assertIn("3 steps, first in step 150", overview(self.read()))
        figure = loss_figure(self.read())
        assert figure is not None
        crosses = [trace for trace in figure.plot.data if trace.name == "not finite"]
        self.assertEqual([list(trace.x) for trace in crosses], [[150, 151, 152]])
        self.assertIn("Not finite in 3 steps", figure.html())
        self.assertNotIn("not finite", self.notes())  # nothing is damaged

    def test_a_wrong_hash_is_said_and_the_content_shown(self) -> None:
        document = read_document(self.folder / "run.json")
        document["model"] = "t6"
        (self.folder / "run.json").write_text(json.dumps(document))
        self.assertIn("run.json was changed or damaged", self.notes())
        self.assertEqual(self.read().model, "t6")
        del document["sha256"]
        (self.folder / "run.json").write_text(json.dumps(document))
        self.assertNotIn("run.json", self.notes())

    def test_missing_files_are_said(self) -> None:
        for name in ("timeline-1.json", "plan-3.json", "metrics.jsonl", "examples.txt"):
            (self.folder / name).unlink()
        notes = self.notes()
        self.assertIn("no timeline of steps 0 to 49: timeline-1.json cannot be read", notes)
        self.assertIn("no plan of steps 75 to 149: plan-3.json cannot be read", notes)
        self.assertIn("metrics.jsonl cannot be read", notes)
        text = page(self.read())
        self.assertIn("no plan of steps 75 to 149: plan-3.json cannot be read", text)
        self.assertIn("The folder has no examples.txt", text)

    def test_only_files_of_the_folder_are_read(self) -> None:
        body = run_document()
        for name in ("../run/timeline-1.json", str(self.folder / "timeline-1.json"), "a\0b"):
            body["segments"][0]["timeline"] = name
            write_document(self.folder / "run.json", "run", body)
            self.assertIn("is not inside of the run's folder", self.notes())

    def test_a_run_that_has_just_begun(self) -> None:
        write_document(self.folder / "run.json", "run", {"segments": []})
        (self.folder / "metrics.jsonl").write_text("")
        self.assertIn("lists no segments", self.notes())
        self.assertIn("No step was measured yet.", page(self.read()))

    def test_folders_that_hold_no_run(self) -> None:
        with self.assertRaisesRegex(NotARun, "is no folder"):
            read_run(self.folder / "nowhere")
        with self.assertRaisesRegex(NotARun, "has no run.json"):
            read_run(self.folder / "checkpoints")
        for text, why in (
            ("noise", "is no JSON"),
            ("[" * 100_000, "is no JSON"),
            ("[]", "no field format"),
            ('{"format": "trireme.plan", "version": 1}', "says it is trireme.plan"),
            ('{"format": "trireme.run", "version": 2}', "has version 2"),
        ):
            (self.folder / "run.json").write_text(text)
            with self.assertRaisesRegex(NotARun, why):
                self.read()

    def test_the_hash_is_that_of_the_documentation(self) -> None:
        formats = Path(__file__).parents[2] / "docs/formats.md"
        blocks = re.findall(r"```json\n(.*?)```", formats.read_text(), re.S)
        hashes = [json.loads(block) for block in blocks]
        self.assertGreater(len(hashes), 6)
        for document in hashes:
            self.assertEqual(document_sha256(document), document["sha256"], document["format"])


class FigureTest(RunTest):
    def test_loss_has_a_line_for_each_attempt_and_the_held_out_losses(self) -> None:
        figure = loss_figure(self.read())
        assert figure is not None
        traces = [(trace.name, len(trace.x)) for trace in figure.plot.data]
        self.assertEqual(traces, [("training", 88), ("training", 75), ("held out", 6)])
        self.assertEqual(sum(trace.showlegend is not False for trace in figure.plot.data), 2)

    # They shared the axis of the loss, and held-out accuracy was absent.
    def test_losses_and_metrics_by_name_have_axes_of_their_own(self) -> None:
        self.append('{"step":150,"loss":2.0,"by_name":{"main":2.0,"accuracy":0.5}}\n')
        self.append(
            '{"step":151,"evaluation":{"loss":3.0,"by_name":{"main":3.0,"accuracy":0.4}}}\n'
        )
        run = self.read()
        self.assertEqual(run.metrics.parts(), ["accuracy"])  # `main` is the loss itself
        figure = parts_figure(run)
        assert figure is not None
        self.assertEqual({trace.name for trace in figure.plot.data}, {"training", "held out"})
        held_out = figure.plot.data[-1]
        self.assertEqual((held_out.x[-1], held_out.y[-1]), (151, 0.4))
        self.assertEqual(figure.plot.layout.yaxis.title.text, "accuracy")
        self.assertIn("held-out accuracy", overview(run))
        whole = loss_figure(run)
        assert whole is not None
        self.assertEqual({trace.name for trace in whole.plot.data}, {"training", "held out"})

    def test_one_loss_is_drawn_once(self) -> None:
        self.append('{"step":150,"loss":2.0,"by_name":{"loss":2.0}}\n')
        self.assertIsNone(parts_figure(self.read()))

    def test_figures_have_a_text_for_those_who_do_not_see_them(self) -> None:
        text = page(self.read())
        labels = re.findall(r'class="plot" role="img" aria-label="([^"]+)"', text)
        self.assertEqual(len(labels), text.count("<figure "))
        self.assertRegex(
            labels[0], r"^Loss\. Training loss from [0-9.]+ to [0-9.]+\. Held-out loss"
        )

    def test_the_page_says_when_and_where(self) -> None:
        body = run_document()
        body["segments"][0]["started"] = "2026-11-23T14:05:00Z"
        body["segments"][0]["host"] = "node7"
        write_document(self.folder / "run.json", "run", body)
        text = overview(self.read())
        self.assertIn("2026-11-23 14:05:00 UTC", text)
        self.assertIn("node7", text)

    def test_the_page_takes_two_megabytes(self) -> None:
        self.assertLess(len(page(self.read())), 2_500_000)

    def test_predictions_stand_beside_what_was_measured(self) -> None:
        run = self.read()
        for make, expected in ((step_time_figure, 436.0), (throughput_figure, 64e3 / 436)):
            figure = make(run)
            assert figure is not None
            predicted = [trace for trace in figure.plot.data if trace.name == "predicted"]
            self.assertEqual(len(predicted), 3)
            self.assertAlmostEqual(predicted[0].y[0], expected)
            self.assertEqual(list(predicted[1].x), [49.5, 87.5])

    def test_reading_stands_beside_the_step(self) -> None:
        figure = reading_figure(self.read())
        assert figure is not None
        names = {trace.name for trace in figure.plot.data}
        self.assertEqual(names, {"reading", "a step", "decoding, all threads"})
        self.assertIn("12.5 MB/s from files; 1.75 microbatches were ready", figure.caption)
        lines = (self.folder / "metrics.jsonl").read_text().replace("read_ms", "other")
        (self.folder / "metrics.jsonl").write_text(lines)
        self.assertIsNone(reading_figure(self.read()), "of a run of an older version")

    def test_steps_above_the_figure_are_counted(self) -> None:
        figure = step_time_figure(self.read())
        assert figure is not None
        self.assertIn("1 of 163 steps lie above the figure", figure.caption)

    def test_timeline_has_a_row_for_each_rank_and_one_scale_of_time(self) -> None:
        figure = timeline_figure(self.read().segments[0])
        assert figure is not None
        layout = figure.plot.layout
        rows = ("rank 0", "rank 1", "rank 2", "rank 3")
        self.assertEqual((layout.yaxis.ticktext, layout.yaxis2.ticktext), (rows, rows))
        self.assertEqual(layout.xaxis.range, layout.xaxis2.range)
        forward = [trace for trace in figure.plot.data if trace.name == "forward"]
        self.assertEqual([len(trace.x) for trace in forward], [16, 16])
        self.assertTrue(forward[0].hovertext[0].startswith("<b>0F0</b> rank 0<br>stage 0"))

    def test_every_event_is_drawn_once(self) -> None:
        segment = self.read().segments[2]
        figure = timeline_figure(segment)
        assert figure is not None
        num_events = sum(len(timeline.events) for timeline in segment.timelines)
        self.assertEqual(sum(len(trace.x) for trace in figure.plot.data), num_events)

    def test_memory_stacks_kinds_and_marks_the_peak(self) -> None:
        figure = memory_figure(self.read().segments[0])
        assert figure is not None
        names = [trace.name for trace in figure.plot.data]
        kinds = ["parameters", "gradients", "optimizer", "activations"]
        self.assertEqual(names, [*kinds, "measured peak", "process, with code"])
        self.assertEqual([len(trace.x) for trace in figure.plot.data], [4] * 6)

    def test_texts_of_files_are_escaped(self) -> None:
        body = run_document()
        evil = "</script><script>alert(2)</script><img src=x onerror=alert(3)>"
        body["model"] = body["segments"][0]["schedule"] = evil
        body["options"] = {evil: evil}
        body["segments"][0]["predicted_peak_bytes"][0][evil] = 1
        write_document(self.folder / "run.json", "run", body)
        timeline = read_document(self.folder / "timeline-1.json")
        timeline["traceEvents"][-1]["name"] = timeline["timelines"][0]["name"] = evil
        del timeline["sha256"]
        (self.folder / "timeline-1.json").write_text(json.dumps(timeline))
        text = page(self.read())
        self.assertNotIn("<script>alert", text)
        self.assertNotIn("<img src=x", text)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", text)


class CommandTest(RunTest):
    def run_report(
        self, *words: str, stdout: IO[str] | int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[str]:
        """The verb where the test is told which program has it, else Python's command."""
        program = os.environ.get("TRIREME_PROGRAM")
        command = [program, "report"] if program else [sys.executable, "-m", "trireme.report"]
        return subprocess.run(
            [*command, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
        )

    def test_the_page_is_in_the_folder_or_elsewhere(self) -> None:
        done = self.run_report(str(self.folder))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"report written to {self.folder}/report.html", done.stdout)
        self.assertIn("note: steps 50 to 87", done.stdout)
        other = self.folder / "other.html"
        self.assertEqual(self.run_report(str(self.folder), "--out", str(other)).returncode, 0)
        self.assertEqual(other.read_text(), (self.folder / "report.html").read_text())

    def test_names_without_utf8_are_printed_somehow(self) -> None:
        out = os.fsencode(self.folder) + b"/\xff.html"
        with mock.patch.dict(os.environ, {"PYTHONIOENCODING": "utf-8:strict"}):
            done = self.run_report(str(self.folder), "--out", os.fsdecode(out))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("report written to", done.stdout)
        self.assertTrue(os.path.exists(out))

    def test_nothing_is_written_where_there_is_no_run(self) -> None:
        out = self.folder / "x.html"
        done = self.run_report(str(self.folder / "checkpoints"), "--out", str(out))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("has no run.json", done.stderr)
        self.assertFalse(out.exists())
        self.assertEqual(self.run_report().returncode, 2)

    def test_a_page_that_cannot_be_written(self) -> None:
        done = self.run_report(str(self.folder), "--out", str(self.folder / "no/such/x.html"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("cannot write", done.stderr)

    def test_a_pipe_is_not_replaced_by_the_page(self) -> None:
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        done = self.run_report(str(self.folder), "--out", str(pipe))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"cannot write {pipe}: it is no regular file", done.stderr)
        self.assertTrue(pipe.is_fifo())
        self.assertEqual(list(self.folder.glob("*.tmp*")), [])

    def test_it_answers_in_json(self) -> None:
        done = self.run_report("--json", str(self.folder))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answer = json.loads(done.stdout)
        self.assertEqual(answer["file"], str(self.folder / "report.html"))
        self.assertIn("steps 50 to 87", "\n".join(answer["notes"]))

    def test_output_that_is_lost_is_a_failure(self) -> None:
        with open("/dev/full", "w") as full:
            done = self.run_report(str(self.folder), stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output was lost: No space left on device", done.stderr)

    def test_an_older_page_stays_until_the_new_one_is_whole(self) -> None:
        out = self.folder / "x.html"
        out.write_text("old")
        with self.assertRaises(TypeError):
            write_atomically(out, 3)  # type: ignore[arg-type]
        self.assertEqual(out.read_text(), "old")
        write_atomically(out, "new")
        self.assertEqual(out.read_text(), "new")
        self.assertEqual(list(self.folder.glob("*.tmp*")), [])

    def test_the_page_names_no_other_place_to_load_from(self) -> None:
        without_plotly = re.sub(r"<script>.*?</script>", "", page(self.read()), flags=re.S)
        self.assertEqual(re.findall(r"(?:src|href)=|url\(|@import", without_plotly), [])


if __name__ == "__main__":
    unittest.main()
