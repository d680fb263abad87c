"""examples/ in Python, run as their README says."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_ddp_by_torchrun() -> None:
    program = str(EXAMPLES / "05_ddp_from_python" / "train.py")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            program,
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    losses = [
        float(text) for text in re.findall(r"^step \d+ loss ([\d.]+)$", done.stdout, re.MULTILINE)
    ]
    assert len(losses) == 5
    assert losses[-1] < losses[0] / 10
