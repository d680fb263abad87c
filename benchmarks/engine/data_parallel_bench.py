"""Two replicas beside two trainings that share nothing: what a sum of gradients for nothing would give.

A BERT encoder of eight blocks of 512 channels (30 million parameters). Each replica, and each training by itself, runs
`--microbatches` microbatches of four samples a step on a core of its own, both at the same time; in turn, `--rounds`
times. Replicas must end with the weights of one process that trains on the whole batch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MICROBATCH = 4
MODEL = ["--model", "bert", "--bert-size", "small", "--bert-blocks", "8"]
DATA = ["--bert-held-out", "0.005"]  # Little, so that evaluations take seconds.


class Bench:
    def __init__(self, program: str, folder: Path, options: argparse.Namespace) -> None:
        self.program, self.folder, self.options = program, folder, options

    def command(self, replicas: int, *words: str) -> list[str]:
        batch = replicas * self.options.microbatches * MICROBATCH
        cache = ["--bert-cache", str(self.folder / "cache")]
        return [
            *(self.program, *MODEL, *DATA, *cache, "train", "--stages", "1"),
            *("--replicas", str(replicas), "--lanes", str(replicas), "--batch", str(batch)),
            *("--microbatch", str(MICROBATCH), "--steps", str(self.options.steps)),
            *("--no-first-step-check", *words),
        ]

    def train(self, *commands: list[str]) -> None:
        """All at the same time."""
        running = [
            subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "TRIREME_MEASURE": "quick"},
            )
            for command in commands
        ]
        for command, process in zip(commands, running, strict=True):
            errors = process.communicate()[1]
            if process.returncode != 0:
                sys.exit(f"{' '.join(command)}: {errors}")

    def replicas(self) -> float:
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            self.train(self.command(2, "--ranks", "2", *kept_in(Path(run, "run"))))
            return median_step(Path(run, "run"))

    def apart(self) -> float:
        """The slower one's step."""
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            runs = [Path(run, "a"), Path(run, "b")]
            self.train(*(self.command(1, "--ranks", "1", *kept_in(one)) for one in runs))
            return max(median_step(one) for one in runs)

    def check(self) -> None:
        """Also makes the tokens that all trainings read."""
        weights = []
        for words in (["--serial"], ["--ranks", "2"]):
            with tempfile.TemporaryDirectory(dir=self.folder) as run:
                save = Path(run, "weights")
                command = self.command(2, "--save", str(save), *words)
                command[command.index("--steps") + 1] = "2"
                self.train(command)
                weights.append(save.read_bytes())
        if weights[0] != weights[1]:
            sys.exit("two replicas ended with other weights than one process")


def kept_in(run: Path) -> list[str]:
    return ["--run", str(run), "--checkpoint-every", "0"]


def median_step(run: Path) -> float:
    return float(json.loads((run / "run.json").read_text())["segments"][0]["median_step_ms"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--microbatches", type=int, default=2)
    with tempfile.TemporaryDirectory() as folder:
        options = parser.parse_args()
        bench = Bench(options.program, Path(folder), options)
        bench.check()
        rounds = [(bench.replicas(), bench.apart()) for _ in range(options.rounds)]
    for replicas, apart in rounds:
        print(f"two replicas {replicas:9.1f} ms a step, apart {apart:9.1f}: {apart / replicas:.3f}")
    ratio = statistics.median(apart / replicas for replicas, apart in rounds)
    print(
        f"median {ratio:.3f} of the speed that sums for nothing would give; same weights as one process"
    )


main()
