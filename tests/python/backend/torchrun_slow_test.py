"""The workloads under a real torchrun, on two, three and four ranks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent


def losses_of(backend: str, num_ranks: int, path: Path) -> list[dict[str, list[float]]]:
    subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={num_ranks}",
            "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
            str(FOLDER / "workloads.py"), backend, str(path),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
        timeout=280,
    )  # fmt: skip
    losses: list[dict[str, Any]] = json.loads(path.read_text())
    return losses


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_losses_are_those_of_gloo(num_ranks: int, tmp_path: Path) -> None:
    ours = losses_of("cpu:trireme", num_ranks, tmp_path / "ours.json")
    theirs = losses_of("gloo", num_ranks, tmp_path / "theirs.json")
    assert len(ours) == len(theirs) == num_ranks
    for own, other in zip(ours, theirs, strict=True):
        assert own.keys() == other.keys()
        for name in own:
            assert own[name] == pytest.approx(other[name], rel=1e-6), name
