"""Programs of several ranks, each a process with the variables that launchers set."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass
class Done:
    code: int
    said: str
    """All that the rank printed."""

    @property
    def result(self) -> Any:
        """What it printed as JSON, on its last line."""
        assert self.code == 0, self.said
        return json.loads(self.said.strip().splitlines()[-1])


def run(program: str, *words: str, num_ranks: int = 2, timeout: float = 240) -> list[Done]:
    """Runs tests/python/tensorflow/PROGRAM on so many ranks, waits for them; by rank. None outlives the call."""
    port = str(_free_port())
    processes = [_start(program, words, rank, num_ranks, port) for rank in range(num_ranks)]
    end = time.monotonic() + timeout
    try:
        said = [process.communicate(timeout=end - time.monotonic())[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
    return [Done(process.returncode, text) for process, text in zip(processes, said, strict=True)]


def _start(
    program: str, words: tuple[str, ...], rank: int, num_ranks: int, port: str
) -> "subprocess.Popen[str]":
    world = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(num_ranks)}
    return subprocess.Popen(
        [sys.executable, str(FOLDER / program), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
    )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
