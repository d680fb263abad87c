"""How far predicted steps and peaks of memory are from measured ones, over plans drawn at random.

T5, BERT and the test models, on one to four ranks: for each such pair the ranks measure a profile, draw_plans draws
plans and their forecasts, and each is trained. The losses of its steps must be, bit by bit, those of one process
that runs the whole model and has compared its first step with the plain loop. A row for each plan, the figures at the
end, also after an interrupt. With more ranks than cores, ranks wait for each other's work; the forecast knows.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

MIB = 2**20

# Of a microbatch: enough work that a step takes milliseconds, not the time of a message.
MICROBATCH = {
    "t5": 2,
    "bert": 4,
    "mlp": 16384,
    "operators": 256,
    "resnet": 128,
    "tagger": 2048,
    "transformer": 512,
    "two_losses": 16384,
    "unet": 128,
}
PLANS_PER_CASE = 5
MEASURED_S = 2.0  # Steps of a plan take about this long together.


@dataclass(frozen=True)
class Case:
    """Plans that are drawn from one profile."""

    model: str
    ranks: int


@dataclass
class Row:
    case: Case
    plan: dict[str, Any]  # What draw_plans printed.
    measured_ms: float
    speed: float  # Time of forwards and backwards over that in the profile.
    peaks: list[int]  # Measured bytes, by rank.

    @property
    def measured_bytes(self) -> int:
        """Of the rank that held most."""
        return max(self.peaks)

    @property
    def step_error(self) -> float:
        return float(self.plan["step_ms"]) / self.measured_ms - 1

    @property
    def error_at_speed(self) -> float:
        return self.speed * (1 + self.step_error) - 1

    @property
    def memory_error(self) -> float:
        return float(max(self.plan["peak_bytes"])) / self.measured_bytes - 1

    def text(self) -> str:
        plan = self.plan
        return (
            f"{self.case.model:12} {self.case.ranks:5} {plan['schedule']:15} {plan['stages']:6} {plan['replicas']:8} "
            f"{plan['microbatches']:4} {plan['recompute']:>7} {plan['shards']:>10} {plan['step_ms']:9.2f} "
            f"{self.measured_ms:9.2f} {100 * self.step_error:+7.1f} {100 * self.error_at_speed:+8.1f} "
            f"{self.measured_bytes / MIB:9.2f} {100 * self.memory_error:+7.1f}"
        )


HEAD = (
    f"{'model':12} {'ranks':>5} {'schedule':15} {'stages':>6} {'replicas':>8} {'m':>4} {'recomp.':>7} {'shards':>10} "
    f"{'predicted':>9} {'ms':>9} {'off %':>7} {'at speed':>8} {'peak MiB':>9} {'off %':>7}"
)


def draw_cases(count: int, generator: random.Random) -> list[Case]:
    """Models and numbers of ranks in turn, in an order of the seed: any first few have many of both."""
    models, ranks = list(MICROBATCH), [1, 2, 3, 4]
    generator.shuffle(models)
    generator.shuffle(ranks)
    pairs = math.lcm(len(models), len(ranks))
    turns = [Case(models[i % len(models)], ranks[i % len(ranks)]) for i in range(pairs)]
    return [turns[i % pairs] for i in range(count)]


class CallError(Exception):
    """A program failed, or did not end."""


class Bench:
    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.losses: dict[tuple[str, str], list[float]] = {}  # Of whole models, by uncut plan.
        self.wrong: list[str] = []  # Losses that are not the whole model's, and calls that failed.

    def call(self, program: str, *words: str) -> str:
        line = f"{program} {' '.join(words)}"
        try:
            done = subprocess.run(
                [str(self.programs / program), *words], capture_output=True, text=True, timeout=600
            )
        except subprocess.TimeoutExpired as error:
            raise CallError(f"{line}: not done after {error.timeout:.0f} s") from error
        if done.returncode != 0:
            raise CallError(f"{line}: {done.stderr}{done.stdout}")
        return done.stdout

    def model(self, name: str, *words: str) -> str:
        cache = {"t5": "--t5-cache", "bert": "--bert-cache"}.get(name)
        options = [cache, str(self.programs / f"{name}_cache")] if cache else []
        return self.call("models", "--model", name, *options, *words)

    def files(self, folder: Path) -> list[str]:
        return [
            *("--profile", str(folder / "profile.json")),
            *("--topology", str(folder / "topology.json")),
        ]

    def draw(self, case: Case, count: int, first: int, seed: int) -> tuple[Path, list[Any]]:
        """Measures a profile: its folder, and plans that were drawn from it."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        self.model(case.model, "record", "--out", str(folder))
        costs = self.files(folder)
        self.model(
            case.model,
            *("profile", "--ranks", str(case.ranks)),
            *("--microbatch", str(MICROBATCH[case.model]), "--out", costs[1], costs[2], costs[3]),
        )
        lines = self.call(
            "draw_plans",
            *("--graph", str(folder / "train.graph.json"), *costs, "--out", str(folder)),
            *("--count", str(count), "--first-schedule", str(first), "--seed", str(seed)),
        )
        return folder, [json.loads(line) for line in lines.splitlines()]

    def train(
        self, case: Case, folder: Path, plan: str, steps: int, *words: str
    ) -> tuple[Any, list[float]]:
        """What the run says of itself, and its losses."""
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            self.model(
                case.model,
                *("train", "--plan", str(folder / plan), "--steps", str(steps)),
                *("--run", f"{run}/run", "--checkpoint-every", "0", *words),
            )
            segment = json.loads(Path(run, "run/run.json").read_text())["segments"][0]
            lines = Path(run, "run/metrics.jsonl").read_text().splitlines()
        return segment, [json.loads(line)["loss"] for line in lines if '"step_ms"' in line]

    def losses_of_model(self, case: Case, folder: Path, uncut: str, steps: int) -> list[float]:
        known = self.losses.get((case.model, uncut), [])
        if len(known) < steps:
            _, known = self.train(case, folder, uncut, max(steps, 12))
            self.losses[case.model, uncut] = known
        return known[:steps]

    def measure(self, case: Case, folder: Path, plan: dict[str, Any]) -> Row:
        steps = max(6, min(24, round(MEASURED_S * 1000 / plan["step_ms"])))
        segment, losses = self.train(
            case, folder, plan["file"], steps, *self.files(folder), "--no-first-step-check"
        )
        expected = self.losses_of_model(case, folder, plan["uncut"], steps)
        row = Row(
            case,
            plan,
            measured_ms=float(segment["median_step_ms"]),
            speed=float(segment["compute_over_profile"]),
            peaks=segment["peak_bytes"],
        )
        if len(losses) != steps or losses != expected:
            self.wrong.append(f"{row.text()}: losses {losses}, of the whole model {expected}")
        return row


def rows_of(bench: Bench, case: Case, count: int, first: int, seed: int) -> Iterator[Row]:
    """Of plans that run; what fails is noted, and the next one tried."""
    try:
        folder, plans = bench.draw(case, count, first, seed)
    except CallError as error:
        bench.wrong.append(str(error))
        return
    for plan in plans:
        try:
            yield bench.measure(case, folder, plan)
        except CallError as error:
            bench.wrong.append(str(error))


def ranks_of(values: Sequence[float]) -> list[float]:
    """By value, from 0; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [
        ordered.index(value) + (ordered.count(value) - 1) / 2  # Few enough for the square.
        for value in values
    ]


def rank_correlation(rows: Sequence[Row]) -> float:
    """Spearman's, of predicted and measured steps."""
    predicted = ranks_of([float(row.plan["step_ms"]) for row in rows])
    measured = ranks_of([row.measured_ms for row in rows])
    return statistics.correlation(predicted, measured)


def errors_text(errors: Sequence[float]) -> str:
    sizes = sorted(abs(error) for error in errors)
    p90 = sizes[math.ceil(0.9 * len(sizes)) - 1]
    return (
        f"median {100 * statistics.median(sizes):.1f} % ({100 * statistics.median(errors):+.1f} % with its sign), "
        f"nine of ten at most {100 * p90:.1f} %, worst {100 * sizes[-1]:.1f} %"
    )


def print_summary(rows: Sequence[Row]) -> None:
    if len(rows) < 2:
        print("too few plans for figures")
        return
    print(f"\n{len(rows)} plans")
    print(f"  step            {errors_text([row.step_error for row in rows])}")
    print(f"  step, at speed  {errors_text([row.error_at_speed for row in rows])}")
    print(f"  peak memory     {errors_text([row.memory_error for row in rows])}")
    print(f"  rank correlation of steps {rank_correlation(rows):.3f}", end="")
    of_models = [
        f"{model} {rank_correlation(chosen):.2f}"
        for model in MICROBATCH
        if len(chosen := [row for row in rows if row.case.model == model]) > 2
    ]
    print(f"; of one model's: {', '.join(of_models)}" if of_models else "")
    for ranks in range(1, 5):
        errors = [row.step_error for row in rows if row.case.ranks == ranks]
        if errors:
            print(f"  {ranks} ranks         {errors_text(errors)}")
    print(
        "off: predicted over measured, less one; at speed: with the predicted step times what forwards and backwards "
        "took over their time in the profile; peak: of the rank that held most"
    )


def interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--plans", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write rows to this file too")
    parser.add_argument("--model", choices=list(MICROBATCH), help="of this model alone")
    parser.add_argument("--ranks", type=int, choices=[1, 2, 3, 4], help="on so many ranks alone")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    cases = [
        Case(options.model or case.model, options.ranks or case.ranks)
        for case in draw_cases(math.ceil(options.plans / PLANS_PER_CASE), generator)
    ]
    signal.signal(signal.SIGTERM, interrupted)
    begin, rows = time.monotonic(), list[Row]()
    print("load before:", " ".join(f"{load:.2f}" for load in os.getloadavg()))
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options.programs, Path(name))
        try:
            for index, case in enumerate(cases):
                first = index * PLANS_PER_CASE
                count = min(PLANS_PER_CASE, options.plans - first)
                for row in rows_of(bench, case, count, first, generator.getrandbits(32)):
                    rows.append(row)
                    print(row.text(), flush=True)
        except KeyboardInterrupt:
            print("interrupted")
    print_summary(rows)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(
        f"{time.monotonic() - begin:.0f} s; calls that failed and losses that are not the whole model's: "
        f"{len(bench.wrong)}"
    )
    if bench.wrong:
        sys.exit("\n".join(bench.wrong))


main()
