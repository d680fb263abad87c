"""A training on images that are cropped and flipped at random has the weights of one that nobody disturbed, killed with
SIGKILL at many moments and resumed each time with another number of ranks and of threads that read.

usage: kills.py TRIREME KILLS
"""

import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

RANKS = (1, 2, 4)
READERS = (1, 3, 8)
CHECKPOINT_EVERY = 3


def write_png(path: Path, side: int, colour: int, draw: random.Random) -> None:
    """Noise, brighter in one of the three channels."""
    rows = b""
    for _ in range(side):
        rows += b"\0"
        for _ in range(side):
            rows += bytes(draw.randrange(256) // (1 if c == colour else 4) for c in range(3))

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


class Runs:
    """Trainings of one program in one folder."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        draw = random.Random(5)
        for i in range(30):
            name = folder / "images" / f"class{i % 3}" / f"{i}.png"
            write_png(name, 18 + i % 5, i % 3, draw)

    def start(
        self, run: str, ranks: int, readers: int, steps: int, *more: str
    ) -> "subprocess.Popen[bytes]":
        """Its launcher leads a group of processes, ranks and all."""
        words = f"""train --model resnet50 --resnet50-images {self._folder}/images --resnet50-depth 18
            --resnet50-width 8 --resnet50-size 8 --resnet50-stem small --run {self._folder}/{run} --resume
            --ranks {ranks} --stages {min(ranks, 2)} --replicas {max(ranks // 2, 1)} --reader-threads {readers}
            --batch 8 --microbatch 2 --lanes 4
            --steps {steps} --checkpoint-every {CHECKPOINT_EVERY} --optimizer sgd --learning-rate 0.05""".split()
        with (self._folder / "log").open("a") as log:
            return subprocess.Popen(
                [self._program, *words, *more],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )

    def finish(self, run: str, ranks: int, readers: int, steps: int) -> bytes:
        """The weights in the end."""
        weights = self._folder / f"{run}.safetensors"
        process = self.start(run, ranks, readers, steps, "--save", str(weights))
        if process.wait(timeout=600) != 0:
            raise SystemExit((self._folder / "log").read_text()[-4000:])
        return weights.read_bytes()

    def num_steps(self, run: str) -> int:
        """Lines of steps that were done, also twice."""
        metrics = self._folder / run / "metrics.jsonl"
        return metrics.read_text().count('"step_ms"') if metrics.exists() else 0

    def newest(self, run: str) -> int:
        """The step of the newest checkpoint."""
        steps = (f.name[5:] for f in (self._folder / run / "checkpoints").glob("step-*"))
        return max((int(step) for step in steps if step.isdecimal()), default=0)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """With SIGKILL; waits until no rank is left."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while True:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)


def main(program: str, num_kills: int) -> None:
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(program, Path(folder))
        done = 0
        for kill in range(num_kills):
            process = runs.start("run", RANKS[kill % 3], READERS[kill // 3 % 3], 1_000_000)
            goal = runs.num_steps("run") + draw.randrange(
                2 * CHECKPOINT_EVERY, 6 * CHECKPOINT_EVERY
            )
            deadline = time.monotonic() + 300
            while runs.num_steps("run") < goal and process.poll() is None:
                assert time.monotonic() < deadline, f"no steps after {kill} kills"
                time.sleep(0.005)
            assert process.poll() is None, (Path(folder) / "log").read_text()[-4000:]
            time.sleep(draw.random() * 0.05)
            kill_group(process)
            newest = runs.newest("run")
            assert newest >= done, f"steps were lost: {newest} after {done}"
            done = newest
        assert done > num_kills, f"{done} steps in {num_kills} runs"
        steps = done + 5
        weights = runs.finish("run", 2, 3, steps)
        expected = runs.finish("undisturbed", 1, 1, steps)
        assert weights == expected, f"other weights after {num_kills} kills and {steps} steps"
        print(f"the same {len(weights)} bytes after {num_kills} kills and {steps} steps")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
