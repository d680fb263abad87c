"""What a case is: a call of ours, and a peer of benchmarks/kernels beside it."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from registry import PEERS, Inputs, Outputs

PEER_MODULES = (
    "attention_peers",
    "coco_peers",
    "detection_peers",
    "normalization_peers",
    "optimizer_peers",
    "ranking_peers",
    "speech_peers",
    "transducer_peers",
    "volume_peers",
)
for _module in PEER_MODULES:
    importlib.import_module(_module)

Tensors = dict[str, np.ndarray]


@dataclass
class Case:
    ours: Callable[[], Outputs]
    theirs: Callable[[], Any]
    peer: str
    tolerance: float = 1e-4


CASES: dict[str, Callable[[int], Case]] = {}


def case(name: str) -> Callable[[Callable[[int], Case]], Callable[[int], Case]]:
    """Registers what makes a case for a number of threads."""

    def register(make: Callable[[int], Case]) -> Callable[[int], Case]:
        CASES[name] = make
        return make

    return register


def beside(
    kernel: str,
    peer: str,
    threads: int,
    tensors: Tensors,
    ours: Callable[[], Outputs],
    tolerance: float = 1e-4,
    folder: Path | None = None,
    **options: str,
) -> Case:
    """Our call beside a peer of benchmarks/kernels."""
    made = PEERS[kernel, peer](Inputs(tensors, options, folder or Path()), threads)
    return Case(ours, made.run, made.version, tolerance)


def random() -> np.random.Generator:
    return np.random.default_rng(1)
