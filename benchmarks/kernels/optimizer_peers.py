"""Peers of the optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np

from registry import Inputs, Outputs, Peer, peer


def cut(array: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """The tensors that lie behind each other in a flat array; their memory is that of the array."""
    parts: list[np.ndarray] = np.split(array, np.cumsum(sizes)[:-1])
    return parts


def torch_optimizer(inputs: Inputs, threads: int, make: Any, version: str) -> Peer:  # noqa: ANN401
    """An optimizer over parameters that start as they are given, once for each run."""
    import torch

    torch.set_num_threads(threads)
    flat = inputs.tensors["parameter"].copy()
    sizes = inputs.tensors["sizes"]
    parameters = [torch.nn.Parameter(torch.from_numpy(part)) for part in cut(flat, sizes)]
    gradients = cut(inputs.tensors["gradient"], sizes)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.from_numpy(gradient)
    optimizer = make(parameters)
    first: list[Outputs] = []

    def run() -> Outputs:
        optimizer.step()
        if not first:
            first.append({"parameter": flat.copy()})
        return first[0]

    return Peer(version, run)


@peer("adamw", "torch")
def adamw_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    return torch_optimizer(
        inputs,
        threads,
        lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=1e-2, fused=True),
        f"torch {torch.__version__} fused",
    )


@peer("sgd", "torch")
def sgd_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    return torch_optimizer(
        inputs,
        threads,
        lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True),
        f"torch {torch.__version__} fused",
    )


@peer("lamb", "timm")
def lamb_timm(inputs: Inputs, threads: int) -> Peer:
    import timm.optim

    return torch_optimizer(
        inputs,
        threads,
        lambda p: timm.optim.Lamb(
            p, lr=1e-3, weight_decay=1e-2, max_grad_norm=None, always_adapt=True
        ),
        f"timm {timm.__version__}",
    )


@peer("lamb", "pytorch_optimizer")
def lamb_pytorch_optimizer(inputs: Inputs, threads: int) -> Peer:
    """It has no bias correction of its own and clips the ratio: its result is not compared."""
    import pytorch_optimizer

    peer = torch_optimizer(
        inputs,
        threads,
        lambda p: pytorch_optimizer.Lamb(p, lr=1e-3, weight_decay=1e-2),
        "pytorch_optimizer",
    )

    def run() -> Outputs:
        peer.run()
        return {}

    return Peer(peer.version, run)


@peer("lars", "timm")
def lars_timm(inputs: Inputs, threads: int) -> Peer:
    import timm.optim

    return torch_optimizer(
        inputs,
        threads,
        lambda p: timm.optim.Lars(
            p, lr=1.0, momentum=0.9, weight_decay=1e-4, trust_coeff=1e-3, always_adapt=True
        ),
        f"timm {timm.__version__}",
    )


@peer("novograd", "timm")
def novograd_timm(inputs: Inputs, threads: int) -> Peer:
    import timm.optim

    return torch_optimizer(
        inputs,
        threads,
        lambda p: timm.optim.NvNovoGrad(
            p, lr=1e-2, betas=(0.95, 0.98), weight_decay=1e-3, grad_averaging=True
        ),
        f"timm {timm.__version__}",
    )
