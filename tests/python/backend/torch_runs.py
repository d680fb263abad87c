"""Runs torch_cases.py in a process of its own: torch reads the backend's name at its import."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Cases that no plug-in of torch.distributed passes, and why.
NOT_OF_PLUGINS = {
    "test_ddp_logging_data_cpu": "DDP logs `custom` as the name of a backend that is not torch's",
}

# Cases that make their model for `mpi`, `nccl` or `gloo` alone: they pass under such a name.
NOT_UNDER_OTHER_NAMES = {
    "test_accumulate_gradients_no_sync",
    "test_accumulate_gradients_no_sync_allreduce_hook",
    "test_accumulate_gradients_no_sync_allreduce_with_then_hook",
    "test_accumulate_gradients_no_sync_grad_is_view",
}


def run_torch_cases(
    num_ranks: int,
    name: str,
    words: Sequence[str] = (),
    *,
    gate: str = "",
    is_native: bool = False,
) -> dict[str, dict[str, Any]]:
    """By case: its ``outcome`` (passed, skipped, failed), ``why``, and ``seconds``."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        run = subprocess.run(
            [
                sys.executable,
                str(Path(__file__).with_name("torch_cases.py")),
                f"--ranks={num_ranks}",
                f"--name={name}",
                f"--json={results}",
                *(["--native"] if is_native else []),
                *([f"--gate={gate}"] if gate else []),
                *words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=500,
        )
        if not results.exists():
            raise AssertionError(run.stdout[-4000:])
        outcomes: dict[str, dict[str, Any]] = json.loads(results.read_text())
        failed = [
            f"{case}: {it['why'][-1500:]}"
            for case, it in outcomes.items()
            if it["outcome"] == "failed"
        ]
        print("\n".join(failed))
        return outcomes
