"""Programs of several ranks, started as users start them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def run(program: str, *words: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Runs tests/python/PROGRAM with this Python."""
    return subprocess.run(
        [sys.executable, str(FOLDER / program), *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "TRIREME_LOG": "error"},
    )


def result_of(program: str, *words: str) -> Any:
    """What it printed as JSON, on its last line."""
    done = run(program, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])
