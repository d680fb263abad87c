"""Calls the program `judge`, and skips where a judge is not installed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

PROGRAM = os.environ["TRIREME_JUDGE"]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SKIPPED = 77  # the exit code that ctest shows as a skipped test


class RefusedError(Exception):
    """Trireme's own error, for what it was given."""


def require(*modules: str) -> None:
    """Ends the test as skipped, and says why, where a judge cannot be imported."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"skipped: {module} is not installed ({error}); ./dev test installs it")
            sys.exit(SKIPPED)


def call(operation: str, tensors: dict[str, Any], **options: object) -> dict[str, Any]:
    """What Trireme makes of NumPy arrays."""
    import numpy as np
    import safetensors.numpy

    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.safetensors"
        outputs = Path(folder) / "outputs.safetensors"
        arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
        safetensors.numpy.save_file(arrays, inputs, {k: str(v) for k, v in options.items()})
        done = subprocess.run(
            [PROGRAM, operation, inputs, outputs], capture_output=True, text=True, check=False
        )
        if done.returncode == 3:
            raise RefusedError(done.stderr)
        if done.returncode != 0:
            raise AssertionError(f"{operation} ended with {done.returncode}: {done.stderr}")
        made: dict[str, Any] = safetensors.numpy.load_file(outputs)
        return made


def main() -> None:
    unittest.main(verbosity=1)
