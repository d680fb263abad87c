"""Peers of the optimizers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from registry import Inputs, Outputs, Peer, peer

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
        first: list[Outputs] = []

        def run() -> Outputs:
            made.step()
            if not first:
                first.append({"parameter": flat.copy()})
            return first[0]

        version = getattr(sys.modules[name], "__version__", "")
        return Peer(f"{name} {version}".strip(), run)

    peer(kernel, name)(make_peer)


optimizer("adamw", "torch.optim", lambda optim, p: optim.AdamW(p, lr=1e-3, fused=True))
optimizer(
    "sgd",
    "torch.optim",
    lambda optim, p: optim.SGD(p, lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True),
)
optimizer(
    "lamb",
    "timm.optim",
    lambda optim, p: optim.Lamb(p, weight_decay=1e-2, max_grad_norm=None, always_adapt=True),
)
optimizer(
    "lars",
    "timm.optim",
    lambda optim, p: optim.Lars(
        p, lr=1.0, momentum=0.9, weight_decay=1e-4, trust_coeff=1e-3, always_adapt=True
    ),
)
optimizer(
    "novograd",
    "timm.optim",
    lambda optim, p: optim.NvNovoGrad(
        p, lr=1e-2, betas=(0.95, 0.98), weight_decay=1e-3, grad_averaging=True
    ),
)
optimizer("adafactor", "torch.optim", lambda optim, p: optim.Adafactor(p, foreach=True))
optimizer("adafactor", "timm.optim", lambda optim, p: optim.Adafactor(p, min_dim_size_to_factor=1))
optimizer(
    "adafactor",
    "pytorch_optimizer",
    lambda optim, p: optim.AdaFactor(p, betas=(None, 0.999)),
)
