"""The workloads under a real torchrun, on two, three and four ranks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent


def losses_of(program: str, words: list[str], num_ranks: int, path: Path) -> Any:  # noqa: ANN401
    """What a program of this folder writes to ``path``, its last argument, on ranks of torchrun."""
    run = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={num_ranks}",
            "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
            str(FOLDER / program), *words, str(path),
        ],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=280,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-8000:]
    return json.loads(path.read_text())


def losses_of_gloo(program: str, words: list[str], num_ranks: int, path: Path) -> Any:  # noqa: ANN401
    """As above. On a busy machine Gloo's processes end by SIGABRT now and then: a second try."""
    try:
        return losses_of(program, [*words, "gloo"], num_ranks, path)
    except AssertionError as error:
        if "SIGABRT" not in str(error):
            raise
    return losses_of(program, [*words, "gloo"], num_ranks, path)


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_losses_are_those_of_gloo(num_ranks: int, tmp_path: Path) -> None:
    ours = losses_of("workloads.py", ["cpu:trireme"], num_ranks, tmp_path / "ours.json")
    theirs = losses_of_gloo("workloads.py", [], num_ranks, tmp_path / "theirs.json")
    assert len(ours) == len(theirs) == num_ranks
    for own, other in zip(ours, theirs, strict=True):
        assert own.keys() == other.keys()
        for name in own:
            assert own[name] == pytest.approx(other[name], rel=1e-6), name


@pytest.mark.parametrize("framework", ["accelerate", "lightning"])
def test_frameworks_have_the_losses_of_gloo(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    ours = losses_of("frameworks.py", [framework, "trireme"], 2, tmp_path / "ours.json")
    theirs = losses_of_gloo("frameworks.py", [framework], 2, tmp_path / "theirs.json")
    assert len(ours) == 8
    assert ours == pytest.approx(theirs, rel=1e-6)
