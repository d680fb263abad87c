"""Optimizers in one or two passes over memory, with the interface of torch.optim.

    optimizer = trireme.optim.Lamb(model.parameters(), lr=2e-3, weight_decay=0.01)

Parameters are dense f32 on the CPU, for SGD and AdamW also f64. Each has its own step; tensors are updated one after
the other on torch's threads, which change no bit. State has torch's names, so AdamW and SGD take the state dicts of
torch's. Formulas, rounding, sources and cost: trireme/kernels/optimizer.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from trireme import _check_torch

_check_torch()

from trireme import _packs  # noqa: E402  after torch's libraries

__all__ = ["SGD", "Adafactor", "AdamW", "Lamb", "Lars", "NovoGrad"]

Params = Iterable[torch.Tensor] | Iterable[dict[str, Any]]
Group = dict[str, Any]
_F32 = (torch.float32,)
_WIDE = (torch.float32, torch.float64)


class _KernelOptimizer(torch.optim.Optimizer):
    """Sees to it that a kernel gets what it takes."""

    _dtypes = _F32

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        for i, parameter in enumerate(param_group["params"]):
            is_dense = parameter.layout == torch.strided and parameter.device.type == "cpu"
            if parameter.dtype not in self._dtypes or not is_dense:
                raise ValueError(
                    f"{type(self).__name__} updates dense tensors on the CPU of type "
                    f"{' or '.join(map(str, self._dtypes))}; parameter {i} of the group is {parameter.layout} on "
                    f"{parameter.device} of type {parameter.dtype}: convert it, or give it to another optimizer"
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient. Returns what `closure` does."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step(group, parameter)
        return loss

    def _step(self, group: Group, parameter: torch.Tensor) -> None:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            raise RuntimeError(f"{type(self).__name__} takes no sparse gradients; use sparse=False")
        if _packs.have_one_layout(parameter, gradient):
            self._update(group, self.state[parameter], parameter.detach(), gradient)
            return
        value = parameter.detach().clone(memory_format=torch.preserve_format)
        self._update(group, self.state[parameter], value, torch.empty_like(value).copy_(gradient))
        parameter.copy_(value)

    def _update(
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        raise NotImplementedError


def _count_step(state: dict[str, Any]) -> int:
    """The number of this step, from 1."""
    step = int(state.get("step", 0)) + 1
    state["step"] = torch.tensor(float(step))
    return step


def _kept(state: dict[str, Any], name: str, like: torch.Tensor) -> torch.Tensor:
    """A tensor of the state in the layout of a parameter; zeros at first."""
    kept = state.get(name)
    if kept is None:
        kept = torch.zeros_like(like, memory_format=torch.preserve_format)
    elif kept.stride() != like.stride() or kept.dtype != like.dtype:
        kept = torch.empty_like(like, memory_format=torch.preserve_format).copy_(kept)
    state[name] = kept
    return kept


def _at_least(least: float, **options: float) -> None:
    for name, value in options.items():
        if not value >= least:
            raise ValueError(f"{name} is {least:g} or more, and is {value}")


def _in_unit(**options: float) -> None:
    for name, value in options.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} is in [0, 1), and is {value}")


class SGD(_KernelOptimizer):
    """Stochastic gradient descent, with torch.optim.SGD's bits. f32 and f64."""

    _dtypes = _WIDE

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        _at_least(0, lr=lr, momentum=momentum, weight_decay=weight_decay)
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
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        is_first = state.get("momentum_buffer") is None
        buffer = None if group["momentum"] == 0 else _kept(state, "momentum_buffer", value)
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


class AdamW(_KernelOptimizer):
    """Adam with decoupled weight decay, as torch.optim.AdamW but for roots, which are correctly rounded. f32 and f64.

    Source   Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2.
    """

    _dtypes = _WIDE

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        _at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        _in_unit(beta1=betas[0], beta2=betas[1])
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    def _update(
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.adamw(
            value,
            gradient,
            _kept(state, "exp_avg", value),
            _kept(state, "exp_avg_sq", value),
            _count_step(state),
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
        )


class Lamb(_KernelOptimizer):
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
        _at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        _in_unit(beta1=betas[0], beta2=betas[1])
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
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.lamb(
            value,
            gradient,
            _kept(state, "exp_avg", value),
            _kept(state, "exp_avg_sq", value),
            _count_step(state),
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["always_adapt"],
        )


class Lars(_KernelOptimizer):
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
        _at_least(
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
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.lars(
            value,
            gradient,
            _kept(state, "momentum_buffer", value),
            float(group["lr"]),
            group["momentum"],
            group["weight_decay"],
            group["trust_coeff"],
            group["eps"],
            group["weight_decay"] != 0 or group["always_adapt"],
        )


class NovoGrad(_KernelOptimizer):
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
        _at_least(0, lr=lr, eps=eps, weight_decay=weight_decay)
        _in_unit(beta1=betas[0], beta2=betas[1])
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
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        _packs.novograd(
            value,
            gradient,
            _kept(state, "exp_avg", value),
            _kept(state, "exp_avg_sq", torch.zeros((), dtype=torch.float64)),
            _count_step(state),
            float(group["lr"]),
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["grad_averaging"],
        )


class Adafactor(_KernelOptimizer):
    """Of the second moments of a matrix it keeps the means of rows and columns alone. With the arguments of
    transformers' Adafactor, and its values for the same ones.

    lr              None with `relative_step`: min(1e-2, 1 / sqrt(step)), or with `warmup_init` 1e-6 step at first.
    eps             added to squares; least size of a parameter.
    clip_threshold  of the root mean square of a tensor's update.
    decay_rate      of the second moments: 1 - step^decay_rate.
    beta1           of momentum; None: none is kept.
    Parameters of 2 dimensions or more are matrices in their last two.
    Source   Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018.
    """

    def __init__(
        self,
        params: Params,
        lr: float | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ) -> None:
        if (lr is None) != relative_step:
            raise ValueError(
                "lr is None with relative_step=True, and a number with relative_step=False"
            )
        if warmup_init and not relative_step:
            raise ValueError("warmup_init is about relative steps; give relative_step=True")
        super().__init__(
            params,
            {
                "lr": lr,
                "eps": eps,
                "clip_threshold": clip_threshold,
                "decay_rate": decay_rate,
                "beta1": beta1,
                "weight_decay": weight_decay,
                "scale_parameter": scale_parameter,
                "relative_step": relative_step,
                "warmup_init": warmup_init,
            },
        )

    def _step(self, group: Group, parameter: torch.Tensor) -> None:
        if parameter.is_contiguous():
            super()._step(group, parameter)
            return
        assert parameter.grad is not None
        value = parameter.detach().contiguous()  # rows and columns are those of this order
        self._update(group, self.state[parameter], value, parameter.grad.contiguous())
        parameter.copy_(value)

    def _update(
        self, group: Group, state: dict[str, Any], value: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        options = _packs.AdafactorOptions(
            learning_rate=None if group["relative_step"] else float(group["lr"]),
            warms_up=group["warmup_init"],
            scales_by_parameter=group["scale_parameter"],
            decay_exponent=-group["decay_rate"],
            clip=group["clip_threshold"],
            beta1=group["beta1"] or 0.0,
            weight_decay=group["weight_decay"],
            epsilon1=group["eps"][0],
            epsilon2=group["eps"][1],
        )
        if value.dim() < 2:
            moments = [_kept(state, "exp_avg_sq", value)]
        else:
            moments = [
                _kept(state, "exp_avg_sq_row", value.new_empty(value.shape[:-1])),
                _kept(
                    state,
                    "exp_avg_sq_col",
                    value.new_empty((*value.shape[:-2], value.shape[-1])),
                ),
            ]
        exp_avg = _kept(state, "exp_avg", value) if group["beta1"] else None
        _packs.adafactor(value, gradient, moments, exp_avg, _count_step(state), options)
