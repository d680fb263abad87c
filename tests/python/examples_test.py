"""examples/ in Python, run as their README says."""

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def run_notebook(path: Path) -> tuple[str, Any]:
    """What its cells print, and the value of the last one."""
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for source in code[:-1]:
            exec(source, names)
        value = eval(code[-1], names)
    return printed.getvalue(), value


def test_the_notebook_plans_verifies_and_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "07_notebook")
    monkeypatch.setattr(sys, "path", list(sys.path))
    printed, figure = run_notebook(Path("planning.ipynb"))
    assert "uncut same bits" in printed
    assert "stage" in printed
    first, evaluated = (re.search(f"{word} ([\\d.]+)", printed) for word in ("loss", "evaluated"))
    assert first is not None and evaluated is not None, printed
    assert float(evaluated[1]) < float(first[1]) / 4
    assert {trace.name for trace in figure.data} >= {"forward", "backward"}
