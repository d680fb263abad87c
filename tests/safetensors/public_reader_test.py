"""Opens what Trireme writes with the public safetensors package, and reads back what that writes.

Usage: public_reader_test.py RANK_PROGRAM
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import safetensors

PROGRAM = ""
TRAINING = [
    "--model",
    "transformer",
    "train",
    "--ranks",
    "2",
    "--stages",
    "1",
    "--replicas",
    "2",
    "--lanes",
    "2",
    "--batch",
    "8",
    "--microbatch",
    "2",
    "--steps",
    "2",
    "--no-drift-check",
]

Tensors = dict[str, tuple[str, list[int], bytes]]


def read(file: Path) -> Tensors:
    """By name: dtype, shape, bytes."""
    tensors = safetensors.deserialize(file.read_bytes())
    return {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in tensors}


class PublicReader(unittest.TestCase):
    """A run of two replicas, so that tensors are divided."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = Path(folder.name) / "run"
        self.weights = Path(folder.name) / "weights.safetensors"
        self.exported = Path(folder.name) / "exported.safetensors"
        self.call(*TRAINING, "--run", str(self.run_folder), "--save", str(self.weights))
        self.checkpoint = self.run_folder / "checkpoints" / "step-2"

    def call(self, *words: str) -> None:
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def joined(self) -> Tensors:
        """All tensors of the checkpoint, put together from the slices that the index names."""
        contents = json.loads((self.checkpoint / "index.json").read_text())["contents"]
        files = {file["name"]: read(self.checkpoint / file["name"]) for file in contents["files"]}
        self.assertGreater(len(files), 1)
        result: Tensors = {}
        for key, tensor in contents["tensors"].items():
            data = b""
            for part in tensor["slices"]:
                is_whole = len(tensor["slices"]) == 1
                name = key if is_whole else f"{key}[{part['begin']}:{part['end']}]"
                data += files[part["file"]][name][2]
            result[key] = (tensor["dtype"].upper(), tensor["shape"], data)
        return result

    def test_shards_are_what_the_index_says(self) -> None:
        joined, weights = self.joined(), read(self.weights)
        # All of them: this model has no parameter of two names.
        names = {key.removeprefix("parameters/") for key in joined if key.startswith("parameters/")}
        self.assertEqual(names, weights.keys())
        for name, tensor in weights.items():
            self.assertEqual(joined[f"parameters/{name}"], tensor, name)
        states = {key.split("/")[1] for key in joined if key.startswith("optimizer/")}
        self.assertEqual(states, {"exp_avg", "exp_avg_sq", "step"})

    def test_export_joins_the_slices(self) -> None:
        self.call("export", str(self.checkpoint), "--out", str(self.exported))
        exported, weights = read(self.exported), read(self.weights)
        self.assertEqual(exported.keys(), weights.keys())
        for name, tensor in exported.items():
            self.assertEqual(tensor, weights[name], name)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
