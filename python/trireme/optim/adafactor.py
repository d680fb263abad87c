"""Adafactor."""

import torch

from trireme import _packs
from trireme.optim.kernel_optimizer import Group, KernelOptimizer, Params, State, count_step, kept


class Adafactor(KernelOptimizer):
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
        self, group: Group, state: State, value: torch.Tensor, gradient: torch.Tensor
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
            moments = [kept(state, "exp_avg_sq", value)]
        else:
            moments = [
                kept(state, "exp_avg_sq_row", value.new_empty(value.shape[:-1])),
                kept(
                    state,
                    "exp_avg_sq_col",
                    value.new_empty((*value.shape[:-2], value.shape[-1])),
                ),
            ]
        exp_avg = kept(state, "exp_avg", value) if group["beta1"] else None
        _packs.adafactor(value, gradient, moments, exp_avg, count_step(state), options)
