"""Peers of the optimizers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from registry import Inputs, Outputs, Peer, peer

# Of the checked steps' gradients, over those of the step before; powers of 2, so that the last one
# is undone exactly.
STEP_SCALES = (1.0, -0.5, 4.0)

Parameters = list[Any]  # of torch
Make = Callable[[Any, Parameters], Any]


def parts(array: np.ndarray, inputs: Inputs) -> list[np.ndarray]:
    """The matrices and vectors that lie behind each other in `array`; their memory is its own."""
    rows, sizes = inputs.tensors["rows"], inputs.tensors["sizes"]
    flat = np.split(array, np.cumsum(sizes)[:-1])
    return [
        part.reshape(num_rows, -1) if num_rows > 1 else part
        for part, num_rows in zip(flat, rows, strict=True)
    ]


def kept_moment(optimizer: Any) -> Outputs:  # noqa: ANN401
    """The sum of the magnitudes of the first moment, where there is one."""
    total = 0.0
    for state in optimizer.state.values():
        moment = state.get("exp_avg", state.get("momentum_buffer"))
        if moment is None or moment.numel() == 0:
            return {}
        total += moment.detach().double().abs().sum().item()
    return {"moment": np.array([total])}


def optimizer(kernel: str, module: str, make: Make) -> None:
    """Registers `make(module, parameters)`."""
    name = module.split(".", maxsplit=1)[0]

    def make_peer(inputs: Inputs, threads: int) -> Peer:
        import torch

        torch.set_num_threads(threads)
        optim = importlib.import_module(module)
        flat = inputs.tensors["parameter"].copy()
        parameters = [torch.nn.Parameter(torch.from_numpy(part)) for part in parts(flat, inputs)]
        gradients = parts(inputs.tensors["gradient"], inputs)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.from_numpy(gradient)
        made = make(optim, parameters)

        def run() -> None:
            made.step()

        def check() -> Outputs:
            """Three steps of gradients that differ; what timed steps add is not looked at."""
            start = flat.copy()
            for scale in STEP_SCALES:
                inputs.tensors["gradient"] *= np.float32(scale)
                made.step()
            inputs.tensors["gradient"] *= np.float32(1 / np.prod(STEP_SCALES))
            return {"change": flat - start} | kept_moment(made)

        version = getattr(sys.modules[name], "__version__", "")
        return Peer(f"{name} {version}".strip(), run, check)

    peer(kernel, name)(make_peer)


optimizer(
    "adamw", "torch.optim", lambda optim, p: optim.AdamW(p, lr=1e-3, weight_decay=1.0, fused=True)
)
optimizer(
    "sgd",
    "torch.optim",
    lambda optim, p: optim.SGD(p, lr=1e-1, momentum=0.9, weight_decay=0.1, fused=True),
)
optimizer(
    "lamb",
    "timm.optim",
    lambda optim, p: optim.Lamb(p, weight_decay=1.0, max_grad_norm=None, always_adapt=True),
)
optimizer(
    "lars",
    "timm.optim",
    lambda optim, p: optim.Lars(
        p, lr=1.0, momentum=0.9, weight_decay=0.1, trust_coeff=1e-3, always_adapt=True
    ),
)
optimizer(
    "novograd",
    "timm.optim",
    lambda optim, p: optim.NvNovoGrad(
        p, lr=10.0, betas=(0.95, 0.98), weight_decay=1e-2, grad_averaging=True
    ),
)
optimizer("adafactor", "torch.optim", lambda optim, p: optim.Adafactor(p, foreach=True))
optimizer("adafactor", "timm.optim", lambda optim, p: optim.Adafactor(p, min_dim_size_to_factor=1))
optimizer(
    "adafactor",
    "pytorch_optimizer",
    lambda optim, p: optim.AdaFactor(p, betas=(None, 0.999)),
)
