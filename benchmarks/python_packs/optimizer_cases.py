"""Optimizers over the parameters of ResNet-50."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import trireme.optim
from case import CASES, Case, random
from registry import PEERS, Inputs, Outputs
from resnet50 import SHAPES


def optimizer_case(kernel: str, peer: str, ours: Any, **options: Any) -> Callable[[int], Case]:  # noqa: ANN401
    """ResNet-50's 25.6 M parameters; after one step each both are compared."""

    def make(threads: int) -> Case:
        sizes = np.array([int(np.prod(shape)) for shape in SHAPES])
        tensors = {
            "parameter": random().standard_normal(sizes.sum()).astype(np.float32),
            "gradient": 1e-2 * random().standard_normal(sizes.sum()).astype(np.float32),
            "sizes": sizes,
            "rows": np.array([shape[0] if len(shape) > 1 else 1 for shape in SHAPES]),
        }
        flat, gradient = tensors["parameter"].copy(), tensors["gradient"].copy()
        ends = np.cumsum(sizes)[:-1]
        parameters = []
        for shape, value, slope in zip(
            SHAPES, np.split(flat, ends), np.split(gradient, ends), strict=True
        ):
            form = (shape[0], -1) if len(shape) > 1 else shape
            parameters.append(torch.nn.Parameter(torch.from_numpy(value.reshape(form))))
            parameters[-1].grad = torch.from_numpy(slope.reshape(form))
        optimizer = ours(parameters, **options)
        start = flat.copy()
        made = PEERS[kernel, peer](Inputs(tensors, {}, Path()), threads)
        is_checked = False

        def run() -> Outputs:
            nonlocal is_checked
            if is_checked:
                optimizer.step()
                return {}
            is_checked = True
            for scale in (1.0, -0.5, 4.0):
                gradient[:] *= np.float32(scale)
                optimizer.step()
            gradient[:] *= np.float32(1 / -2.0)
            return {"change": flat - start}

        peer_runs = [made.run, made.check or made.run]  # the last one first, once

        def theirs() -> Outputs:
            return (peer_runs.pop() if len(peer_runs) > 1 else made.run)()

        return Case(run, theirs, made.version, 1e-3)

    return make


CASES["adamw/resnet50"] = optimizer_case(
    "adamw", "torch", trireme.optim.AdamW, lr=1e-3, weight_decay=1.0
)
CASES["sgd/resnet50"] = optimizer_case(
    "sgd", "torch", trireme.optim.SGD, lr=1e-1, momentum=0.9, weight_decay=0.1
)
CASES["lamb/resnet50"] = optimizer_case(
    "lamb", "timm", trireme.optim.Lamb, weight_decay=1.0, always_adapt=True
)
CASES["lars/resnet50"] = optimizer_case(
    "lars", "timm", trireme.optim.Lars, lr=1.0, weight_decay=0.1, always_adapt=True
)
CASES["novograd/resnet50"] = optimizer_case(
    "novograd", "timm", trireme.optim.NovoGrad, lr=10.0, weight_decay=1e-2, grad_averaging=True
)
CASES["adafactor/resnet50"] = optimizer_case(
    "adafactor", "pytorch_optimizer", trireme.optim.Adafactor
)
