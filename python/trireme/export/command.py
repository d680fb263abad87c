"""The options of `trireme report` that ask for writers, and what they do."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trireme.export.exported_run import read_exported_run
from trireme.export.metrics_tail import MetricsTail
from trireme.export.mlflow import MlflowWriter
from trireme.export.mlperf import MlperfOptions, MlperfWriter, parse_value
from trireme.export.quality import WantedQuality
from trireme.export.tensorboard import TensorBoardWriter
from trireme.export.writer import ExportError, Writer, note_lines_without_time
from trireme.report.fields import Notes

_LOOK_S = 1.0  # between two looks at a living run
_PACKAGES = {"mlperf_logging": "mlperf-logging", "mlflow": "mlflow-skinny, or mlflow for databases"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="events for TensorBoard")
    parser.add_argument("--mlflow", metavar="URI", help="tracking server or database of MLflow")
    parser.add_argument("--experiment", help="of MLflow")
    parser.add_argument("--mlperf", type=Path, metavar="FILE", help="logging lines of MLPerf")
    parser.add_argument("--mlperf-benchmark", metavar="NAME", help="default: the model's name")
    parser.add_argument("--mlperf-value", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--best-by", metavar="NAME", help="MLPerf's quality; default: the run's")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--best-is-most", action="store_true", default=None)
    direction.add_argument("--best-is-least", action="store_false", dest="best_is_most")
    parser.add_argument("--target", type=float, help="of the quality; default: the run's")
    parser.add_argument("--follow", action="store_true", help="until a living run ends")


def are_asked_for(arguments: argparse.Namespace) -> bool:
    return any((arguments.tensorboard, arguments.mlflow, arguments.mlperf))


def misuse(arguments: argparse.Namespace) -> str:
    """Why these options do not go together; empty where they do."""
    if arguments.follow and not are_asked_for(arguments):
        return "--follow goes with --tensorboard, --mlflow or --mlperf"
    if arguments.experiment and not arguments.mlflow:
        return "--experiment goes with --mlflow"
    of_mlperf = ("mlperf_benchmark", "best_by", "best_is_most", "target")
    is_given = any(getattr(arguments, name) is not None for name in of_mlperf)
    if (is_given or arguments.mlperf_value) and not arguments.mlperf:
        return "--mlperf-..., --best-... and --target go with --mlperf"
    return ""


def make_writers(arguments: argparse.Namespace) -> list[Writer]:
    """Raises ExportError, also where a library is missing."""
    writers: list[Writer] = []
    try:
        if arguments.tensorboard:
            writers.append(TensorBoardWriter(arguments.tensorboard))
        if arguments.mlflow:
            writers.append(MlflowWriter(arguments.mlflow, arguments.experiment))
        if arguments.mlperf:
            quality = WantedQuality(arguments.best_by, arguments.best_is_most, arguments.target)
            values = dict(parse_value(text) for text in arguments.mlperf_value)
            options = MlperfOptions(arguments.mlperf_benchmark, values, quality)
            writers.append(MlperfWriter(arguments.mlperf, options))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        package = _PACKAGES.get(missing, missing)
        raise ExportError(
            f"{sys.executable} has no {missing}: install {package} there, or set TRIREME_PYTHON to a "
            "Python that has it"
        ) from None
    return writers


def export(folder: Path, writers: list[Writer], follows: bool, notes: Notes) -> list[str]:
    """What was written, a line for each writer. Raises NotARun, ExportError, OSError."""
    tail = MetricsTail(folder / "metrics.jsonl")
    with _stopped_by_signals() as is_stopped:
        while True:
            run = read_exported_run(folder, notes)
            tail.read(notes)
            news = tail.history.take()
            for writer in writers:
                writer.write(run, tail.history, news)
            if not follows or run.has_ended() or is_stopped():
                break
            time.sleep(_LOOK_S)
    tail.finish(notes)
    note_lines_without_time(tail.history, notes)
    return [writer.finish(run, tail.history, notes) for writer in writers]


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Within it SIGINT and SIGTERM ask for an end in which all that was read is written."""
    seen: list[int] = []
    before = {
        number: signal.signal(number, lambda one, _: seen.append(one))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
