"""Optimizers that look at the size of each tensor, for large batches."""

import torch

from trireme import _packs
from trireme.optim.kernel_optimizer import (
    Group,
    KernelOptimizer,
    Params,
    State,
    at_least,
    count_step,
    in_unit,
    kept,
)


class Lamb(KernelOptimizer):
    """Adam whose step of each tensor has the size of the tensor, for large batches. As timm's Lamb, but without its
    clipping of gradients, which torch.nn.utils.clip_grad_norm_ does.

    always_adapt   tensors without weight decay adapt too (NVLAMB's rule); else their trust ratio is 1.
    Source         You et al., "Large batch optimization for deep learning", ICLR 2020, algorithm 2.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        always_adapt: bool = False,
    ) -> None:
        at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        in_unit(beta1=betas[0], beta2=betas[1])
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "always_adapt": always_adapt,
            },
        )

    def _update(
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.lamb(
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
            group["always_adapt"],
        )


class Lars(KernelOptimizer):
    """SGD with momentum whose step of each tensor has the size of the tensor. As timm's Lars with momentum.

    always_adapt   tensors without weight decay adapt too; else their ratio is 1, as biases and norms want it.
    Source         You et al., "Large batch training of convolutional networks", 2017, algorithm 1.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust_coeff: float = 1e-3,
        eps: float = 1e-8,
        always_adapt: bool = False,
    ) -> None:
        at_least(
            0, lr=lr, momentum=momentum, weight_decay=weight_decay, trust_coeff=trust_coeff, eps=eps
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "weight_decay": weight_decay,
                "trust_coeff": trust_coeff,
                "eps": eps,
                "always_adapt": always_adapt,
            },
        )

    def _update(
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.lars(
            value,
            gradient,
            kept(state, "momentum_buffer", value),
            float(group["lr"]),
            group["momentum"],
            group["weight_decay"],
            group["trust_coeff"],
            group["eps"],
            group["weight_decay"] != 0 or group["always_adapt"],
        )


class NovoGrad(KernelOptimizer):
    """Adam with one second moment a tensor. As timm's NvNovoGrad.

    Source   Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments", 2019, algorithm 1.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.95, 0.98),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        grad_averaging: bool = False,
    ) -> None:
        at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        in_unit(beta1=betas[0], beta2=betas[1])
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "grad_averaging": grad_averaging,
            },
        )

    def _update(
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        # A number: load_state_dict would round a tensor to f32.
        state["exp_avg_sq"] = _packs.novograd(
            value,
            gradient,
            kept(state, "exp_avg", value),
            state.get("exp_avg_sq", 0.0),
            count_step(state),
            float(group["lr"]),
            group["betas"][0],
            group["betas"][1],
            group["eps"],
            group["weight_decay"],
            group["grad_averaging"],
        )
