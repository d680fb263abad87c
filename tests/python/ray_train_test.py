"""examples/09_ray_train: a worker is killed, Ray starts both again, and the weights are those of one process."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "09_ray_train"
STEPS = 200

pytest.importorskip(
    "ray.train", reason="Ray is not installed: examples/09_ray_train/README.md says how to run this"
)

ALONE = f"""
import sys, torch, trireme
sys.path.insert(0, {str(EXAMPLE)!r})
from train_in_ray import LanguageModel, loss, samples
torch.manual_seed(0)
session = trireme.Session(
    LanguageModel(), loss, samples(1024), steps={STEPS}, batch_size=32, microbatch_size=4,
    learning_rate=3e-3, plan="even",
)
for _ in session: pass
session.save_weights("alone.safetensors")
"""


def wait_for_checkpoint(run: subprocess.Popen[str], folder: Path) -> None:
    while not any(folder.glob("run/checkpoints/step-*[0-9]")):
        assert run.poll() is None, (folder / "log").read_text()
        time.sleep(0.05)


def test_killed_worker(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, str(EXAMPLE / "train_in_ray.py"), str(tmp_path), "2", str(STEPS)],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
        )
    try:
        wait_for_checkpoint(run, tmp_path)
        (worker,) = re.findall(r"pid=(\d+)\) world_rank=1", (tmp_path / "log").read_text())
        os.kill(int(worker), signal.SIGKILL)
        assert run.wait(900) == 0, (tmp_path / "log").read_text()
    finally:
        run.terminate()
    first, second = json.loads((tmp_path / "run" / "run.json").read_text())["segments"]
    assert (first["first_step"], second["first_step"] >= 20) == (0, True)
    subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, check=True, timeout=300)
    trained = (tmp_path / "trained" / "weights.safetensors").read_bytes()
    assert trained == (tmp_path / "alone.safetensors").read_bytes()
