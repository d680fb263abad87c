"""A run's metrics as MLPerf's lines, judged by its compliance checker. Exit code 77: it is not installed."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import unittest
from typing import Any

from export_case import ExportCase, once, text_of
from sample_run import STARTED_MS, Document, metrics_lines, run_document, write_document
from trireme.export.command import export
from trireme.export.mlperf import MlperfOptions, MlperfWriter
from trireme.export.quality import WantedQuality
from trireme.export.writer import ExportError

try:
    from mlperf_logging.compliance_checker import mlp_compliance
except ModuleNotFoundError as missing:
    print(f"[  SKIPPED ] report/mlperf: requirements-python.txt is not installed: {missing}")
    sys.exit(77)


PLACES = ("linear", "attn", "comm")
OPTIONS = {
    "optimizer": "sgd",
    "learning_rate": "0.1",
    "samples": "1600",
    "warmup_steps": "10",
    "weight_decay": "0.0002",
}


class MlperfTest(ExportCase):
    """The sample as an evaluated ResNet that meets its target."""

    def setUp(self) -> None:
        super().setUp()
        self.file = self.out.with_suffix(".log")
        self.change_run(model="resnet50", options={**OPTIONS})
        lines = metrics_lines()
        for line in lines:
            if "evaluation" in line:
                line["evaluation"]["by_name"] = {"top1": 0.7 + line["step"] / 2000}
        self.write_lines(lines)

    def options(self, values: Document | None = None, target: float | None = 0.76) -> MlperfOptions:
        given = {"submission_org": "unknown", "eval_samples": 50_000} | (values or {})
        return MlperfOptions(None, given, WantedQuality("top1", True, target))

    def export(self, options: MlperfOptions) -> list[dict[str, Any]]:
        export(self.folder, [MlperfWriter(self.file, options)], False, self.texts)
        lines = self.file.read_text().splitlines()
        return [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]

    def complaints(self, ruleset: str) -> str:
        """Of MLPerf's checker; nothing where it passes."""
        checker = mlp_compliance.make_checker("training", ruleset, quiet=True, werror=False)
        passes, *_ = mlp_compliance.main(str(self.file), f"training_{ruleset}/common.yaml", checker)
        texts = [*checker.overwritable.values(), *checker.not_overwritable]
        self.assertEqual(passes, not texts)
        return "\n".join(texts)

    def test_the_checker_passes(self) -> None:
        self.export(self.options())
        for ruleset in ("0.7.0", "1.1.0", "2.1.0"):
            self.assertEqual(self.complaints(ruleset), "", ruleset)
        self.assertEqual(self.texts.texts, [])
        self.export(self.options({"submission_benchmark": "ssd"}))
        for ruleset in ("3.1.0", "4.1.0"):
            self.assertEqual(self.complaints(ruleset), "", ruleset)
        self.export(self.options({"submission_benchmark": "bert"}))
        self.assertEqual(self.complaints("4.1.0"), "")
        precisions = {f"lowest_numerical_precision_in_{at}": "fp32" for at in PLACES}
        self.export(self.options({"submission_benchmark": "llama31_8b"} | precisions))
        self.assertEqual(self.complaints("6.1.0"), "")

    def test_the_checker_passes_for_the_closed_division(self) -> None:
        closed = {
            "submission_division": "closed",
            "sgd_opt_base_learning_rate": 0.1,
            "sgd_opt_end_learning_rate": 0.0001,
            "sgd_opt_learning_rate_decay_poly_power": 2,
            "sgd_opt_learning_rate_decay_steps": 1000,
            "sgd_opt_weight_decay": 0.0002,
            "sgd_opt_momentum": 0.9,
            "model_bn_span": 8,
        }
        self.export(self.options(closed))
        self.assertEqual(self.complaints("0.7.0"), "")

    def test_the_checker_says_what_is_missing(self) -> None:
        self.export(MlperfOptions(None, {}, WantedQuality("top1", True, 0.76)))
        complaints = self.complaints("2.1.0")
        self.assertIn("EXACTLY_ONE occurrence of 'submission_org'", complaints)
        self.assertIn("EXACTLY_ONE occurrence of 'eval_samples'", complaints)
        self.assertEqual(
            self.texts.texts,
            [
                "MLPerf's lines have no eval_samples; give --mlperf-value eval_samples=N",
                "MLPerf's lines have no submission_org; give --mlperf-value submission_org=NAME",
            ],
        )

    def test_times_are_those_of_the_run(self) -> None:
        events = self.export(self.options())
        times = [event["time_ms"] for event in events]
        self.assertEqual(times, sorted(times))
        by_key = {event["key"]: event for event in events}
        lines = metrics_lines()
        self.assertEqual(by_key["init_start"]["time_ms"], STARTED_MS)
        first = round(lines[0]["time_ms"] - lines[0]["step_ms"])
        self.assertEqual(by_key["init_stop"]["time_ms"], first)
        self.assertEqual(by_key["run_start"]["time_ms"], first)
        self.assertEqual(by_key["run_stop"]["time_ms"], lines[-1]["time_ms"])
        expected = once(lines)["evaluation"]
        for event in events:
            if event["key"] in ("eval_accuracy", "eval_stop"):
                line = expected[event["metadata"]["step_num"]]
                self.assertEqual(event["time_ms"], line["time_ms"])
            if event["key"] == "eval_start":
                line = expected[event["metadata"]["step_num"]]
                self.assertEqual(event["time_ms"], round(line["time_ms"] - 118.5))

    def test_evaluations_are_there_once_with_samples_and_epochs(self) -> None:
        events = self.export(self.options())
        found = [event for event in events if event["key"] == "eval_accuracy"]
        self.assertEqual(
            [event["metadata"]["step_num"] for event in found], list(range(25, 151, 25))
        )
        self.assertAlmostEqual(found[-1]["value"], 0.775)
        self.assertEqual(found[-1]["metadata"]["samples_count"], 150 * 64)
        self.assertEqual(found[-1]["metadata"]["epoch_num"], 150 * 64 / 1600)
        blocks = [event for event in events if event["key"] == "block_start"]
        self.assertEqual(
            [event["metadata"]["first_epoch_num"] for event in blocks], [0, 1, 2, 3, 4, 5]
        )
        self.assertEqual({event["metadata"]["epoch_count"] for event in blocks}, {1})

    def test_success_is_said_of_a_target_that_was_met(self) -> None:
        def status(target: float | None) -> str:
            return str(self.export(self.options(target=target))[-1]["metadata"]["status"])

        self.assertEqual(status(0.7749), "success")
        self.assertEqual(status(0.7751), "aborted")
        self.assertEqual(status(None), "aborted")
        self.assertIn("no target is known", self.texts.texts[-1])

    def test_target_and_metric_are_those_of_the_run(self) -> None:
        given = {"best-by": ["top1"], "best-is-most": ["true"], "target": ["0.77"]}
        self.change_run(model="resnet50", options={**OPTIONS}, given=given)
        values = {"submission_org": "unknown", "eval_samples": 1}
        self.assertEqual(
            self.export(MlperfOptions(values=values))[-1]["metadata"]["status"], "success"
        )
        best = {"by": "top1", "is_most": False, "checkpoints": [], "evaluations": []}
        write_document(self.folder / "best.json", "best", best)
        given["target"] = ["0.1"]
        self.change_run(model="resnet50", options={**OPTIONS}, given=given)
        self.assertEqual(
            self.export(MlperfOptions(values=values))[-1]["metadata"]["status"], "aborted"
        )

    def test_a_direction_that_nobody_says_is_refused(self) -> None:
        options = MlperfOptions(quality=WantedQuality("top1", None, 0.5))
        with self.assertRaisesRegex(ExportError, "--best-is-most or --best-is-least"):
            self.export(options)

    def test_a_metric_that_is_not_there_is_refused(self) -> None:
        with self.assertRaisesRegex(ExportError, "after 25 steps has no 'AP'; it has top1"):
            self.export(MlperfOptions(quality=WantedQuality("AP")))

    def test_lines_that_the_library_leaves_out_are_an_error(self) -> None:
        with self.assertRaisesRegex(ExportError, "left lines out"):
            self.export(self.options({"seed": object()}))

    def test_what_the_run_measured_is_not_given(self) -> None:
        for key in ("eval_accuracy", "run_start"):
            with self.assertRaisesRegex(ExportError, "cannot be given"):
                MlperfWriter(self.file, MlperfOptions(values={key: 1}))

    def test_lines_without_times_are_refused(self) -> None:
        self.append('{"step":150,"loss":2.0}\n')
        with self.assertRaisesRegex(ExportError, "lines without time_ms"):
            self.export(self.options())
        self.assertFalse(self.file.exists())

    def test_a_run_that_goes_on_has_no_end(self) -> None:
        segments = run_document()["segments"]
        segments[-1]["ended"] = "unknown"
        self.change_run(model="resnet50", options={**OPTIONS}, segments=segments)
        last = {"step": 150, "loss": 2.0, "step_ms": 1, "time_ms": STARTED_MS + 10**6}
        self.append(text_of([last]))
        keys = [event["key"] for event in self.export(self.options())]
        self.assertNotIn("run_stop", keys)
        self.assertEqual(keys.count("block_start"), keys.count("block_stop") + 1)
        self.assertIn("the run has not ended: MLPerf's lines have no run_stop", self.texts.texts)
        self.assertIn("EXACTLY_ONE occurrence of 'run_stop'", self.complaints("0.7.0"))

    def test_evaluations_of_others_come_beside_the_steps(self) -> None:
        lines: list[Document] = []
        for step in range(8):
            time_ms = STARTED_MS + 1000 * (step + 5)
            lines.append({"step": step, "loss": 1.0, "step_ms": 900, "time_ms": time_ms})
            if step in (3, 7):
                found = {"loss": 1.0, "by_name": {"top1": 0.8}}
                lines.append({"step": step - 1, "evaluation": found, "time_ms": time_ms + 1})
        self.write_lines(lines)
        events = self.export(self.options({"submission_benchmark": "ssd"}))
        keys = [event["key"] for event in events if "metadata" in event]
        course = [key for key in keys if key.startswith(("block", "eval_a", "run"))]
        self.assertEqual(
            course,
            [
                "run_start",
                "block_start",
                "eval_accuracy",
                "block_stop",
                "eval_accuracy",
                "run_stop",
            ],
        )
        self.assertEqual(self.complaints("4.1.0"), "")


class CommandTest(ExportCase):
    def test_several_at_once(self) -> None:
        log = self.out.with_suffix(".log")
        found = self.command(
            *("--tensorboard", self.out, "--mlperf", log, "--mlperf-benchmark", "bert"),
            *("--mlperf-value", "submission_org=a b", "--mlperf-value", "eval_samples=7"),
        )
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertIn(f"events of TensorBoard written to {self.out}\nlines of MLPerf", found.stdout)
        text = log.read_text()
        self.assertIn('"key": "submission_org", "value": "a b"', text)
        self.assertIn('"key": "eval_samples", "value": 7', text)
        self.assertIn('"key": "submission_benchmark", "value": "bert"', text)
        self.assertFalse((self.folder / "report.html").exists())

    def test_misuse(self) -> None:
        for words in (
            ("--follow",),
            ("--target", "3"),
            ("--tensorboard", self.out, "--experiment", "e"),
            ("--tensorboard", self.out, "--mlperf-value", "a=b"),
            ("--tensorboard", self.out, "--out", "page.html"),
            ("--mlperf", "x", "--best-is-most", "--best-is-least"),
        ):
            self.assertEqual(self.command(*words).returncode, 2, words)
        found = self.command("--mlperf", self.out, "--mlperf-value", "org")
        self.assertEqual(found.returncode, 1)
        self.assertIn("--mlperf-value is KEY=VALUE, not 'org'", found.stderr)

    def test_a_folder_without_a_run_is_refused(self) -> None:
        (self.folder / "run.json").unlink()
        found = self.command("--tensorboard", self.out)
        self.assertEqual(found.returncode, 2)
        self.assertIn("holds no run", found.stderr)

    def test_a_library_that_is_missing_is_named(self) -> None:
        for words, name in (
            (("--tensorboard", self.out), "tensorboard"),
            (("--mlperf", self.out), "mlperf-logging"),
            (("--mlflow", "x"), "mlflow-skinny"),
        ):
            code = (
                "import sys; sys.modules.update(tensorboard=None, mlflow=None, mlperf_logging=None);"
                "import runpy; runpy.run_module('trireme.report', run_name='__main__')"
            )
            command = [sys.executable, "-c", code, str(self.folder), *map(str, words)]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(found.returncode, 1)
            self.assertIn(f"install {name}", found.stderr)

    def test_the_verb_hands_all_options_on(self) -> None:
        program = os.environ.get("TRIREME_PROGRAM")
        if program is None:
            self.skipTest("the program is not built")
        python = self.folder / "python"
        python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        python.chmod(0o755)
        words = ["--tensorboard=a b", "--mlflow=c", "--experiment=d", "--mlperf=e"]
        words += ["--mlperf-benchmark=f", "--mlperf-value=g=1", "--mlperf-value=h=i j"]
        words += ["--best-by=l", "--best-is-most", "--best-is-least", "--target=-2.5"]
        words += ["--follow", "--out=k"]
        said = subprocess.run(
            [program, "report", str(self.folder), *words],
            check=True,
            env=os.environ | {"TRIREME_PYTHON": str(python)},
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        self.assertEqual(said[:2] + said[-2:], ["-m", "trireme.report", "--", str(self.folder)])
        self.assertEqual(sorted(said[2:-2]), sorted(words))

    def test_the_verb_follows(self) -> None:
        program = os.environ.get("TRIREME_PROGRAM")
        if program is None:
            self.skipTest("the program is not built")
        words = ["--json", "report", str(self.folder), "--tensorboard", str(self.out), "--follow"]
        environment = os.environ | {"TRIREME_PYTHON": sys.executable}
        done = subprocess.run([program, *words], check=True, env=environment, capture_output=True)
        written = json.loads(done.stdout)["written"]
        self.assertEqual(written, [f"events of TensorBoard written to {self.out}"])


del ExportCase

if __name__ == "__main__":
    for name in ("", "tensorboard"):
        logging.getLogger(name).setLevel(logging.ERROR)  # warnings are of what is expected here
    unittest.main()
