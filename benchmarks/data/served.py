"""A process that answers a line for each line it is asked: the libraries that are measured in turn."""

import subprocess
from collections.abc import Sequence
from pathlib import Path


class Served:
    def __init__(self, command: Sequence[str | Path]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.greeting = self.answer()

    def answer(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended with {self.process.wait()}")
        return line

    def ask(self, text: str) -> str:
        assert self.process.stdin
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.answer()
