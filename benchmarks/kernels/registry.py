"""What a peer of `trireme bench kernels` is, and the files that it reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

Outputs = dict[str, Any]  # NumPy arrays, or torch tensors that share memory with one
Run = Callable[[], Outputs]


class MissingPeerError(Exception):
    """What a peer needs is not there."""


@dataclass
class Inputs:
    """The tensors of a case by name, its options, and the folder with whatever else it wrote."""

    tensors: dict[str, np.ndarray]
    options: dict[str, str]
    folder: Path


@dataclass
class Peer:
    """`run` does what is timed and returns what it made, under the names of the case's outputs.

    Where what is compared takes more than that, `check` runs instead before anything is timed, and
    what `run` returns is not looked at.
    """

    version: str
    run: Callable[[], Any] = field(repr=False)
    check: Run | None = field(default=None, repr=False)


PEERS: dict[tuple[str, str], Callable[[Inputs, int], Peer]] = {}


def peer(
    kernel: str, name: str
) -> Callable[[Callable[[Inputs, int], Peer]], Callable[[Inputs, int], Peer]]:
    """Registers what makes a peer of the cases `kernel/...` from inputs and a number of threads."""

    def register(make: Callable[[Inputs, int], Peer]) -> Callable[[Inputs, int], Peer]:
        PEERS[kernel, name] = make
        return make

    return register


def read_inputs(file: Path) -> Inputs:
    with safetensors.safe_open(file, framework="numpy") as opened:
        options = opened.metadata() or {}
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    return Inputs(tensors, options, file.parent)


def write_outputs(file: Path, outputs: Outputs) -> None:
    arrays = {
        name: np.ascontiguousarray(value.detach().numpy() if hasattr(value, "detach") else value)
        for name, value in outputs.items()
    }
    safetensors.numpy.save_file(arrays, file)
