"""Optimizers that change each element by itself."""

import torch

from trireme import _packs
from trireme.optim.kernel_optimizer import (
    F32_OR_F64,
    Group,
    KernelOptimizer,
    Params,
    State,
    at_least,
    count_step,
    in_unit,
    kept,
)


class SGD(KernelOptimizer):
    """Stochastic gradient descent, with torch.optim.SGD's bits. f32 and f64."""

    _dtypes = F32_OR_F64

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        at_least(0, lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs a momentum above 0 and no dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
            },
        )

    def _update(
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        is_first = state.get("momentum_buffer") is None
        buffer = None if group["momentum"] == 0 else kept(state, "momentum_buffer", value)
        _packs.sgd(
            value,
            gradient,
            buffer,
            1 if is_first else 2,
            float(group["lr"]),
            group["momentum"],
            group["dampening"],
            group["weight_decay"],
            group["nesterov"],
        )


class AdamW(KernelOptimizer):
    """Adam with decoupled weight decay, as torch.optim.AdamW but for roots, which are correctly rounded. f32 and f64.

    Source   Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2.
    """

    _dtypes = F32_OR_F64

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        in_unit(beta1=betas[0], beta2=betas[1])
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    def _update(
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.adamw(
            value,
            gradient,
            kept(state, "exp_avg", value),
            kept(state, "exp_avg_sq", value),
            count_step(state),
            float(group["lr"]),
            group["betas"][0],
            group["betas"][1],
            group["eps"],
            group["weight_decay"],
        )
