"""Optimizers, judged by torch, timm and pytorch_optimizer."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from functools import partial
from typing import Any

import judging

judging.require("numpy", "torch", "timm", "pytorch_optimizer")

import numpy as np  # noqa: E402
import pytorch_optimizer  # noqa: E402
import timm.optim  # noqa: E402
import torch  # noqa: E402

Make = Callable[[list[torch.nn.Parameter]], Any]
MOMENTS = ("exp_avg", "exp_avg_sq", "momentum_buffer")


def round_moments(optimizer: Any, kept: tuple[str, ...]) -> None:  # noqa: ANN401
    """To bf16, as they would be kept between steps."""
    for state in optimizer.state.values():
        for name in kept:
            if isinstance(state.get(name), torch.Tensor):
                state[name].copy_(state[name].bfloat16())


class Optimizers(unittest.TestCase):
    def compare(
        self,
        name: str,
        make: Make,
        shapes: tuple[tuple[int, ...], ...] = ((1,), (1000,), (20_000,)),
        kept: tuple[str, ...] = MOMENTS,
        **options: float,
    ) -> None:
        """Five steps of a tensor of each shape, its moments kept as f32 and as bf16.

        Where an f32 differs in its last place a moment of bf16 may be rounded the other way: of
        1000 elements 5 may differ by more. LAMB moves by moments as they are kept, its judge by
        those before: hence 2e-5.
        """
        random = np.random.default_rng(1)
        for shape in shapes:
            start = random.normal(size=shape).astype(np.float32)
            gradients = random.normal(size=(5, *shape)).astype(np.float32)
            for bf16 in (0, 1):
                parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
                judge = make([parameter])
                for gradient in gradients:
                    parameter.grad = torch.from_numpy(gradient.copy())
                    judge.step()
                    if bf16:
                        round_moments(judge, kept)
                tensors = {"parameter": start.ravel(), "gradient": gradients.reshape(5, -1)}
                ours = judging.call(name, tensors, bf16=bf16, **options)["parameter"]
                its = parameter.detach().numpy().ravel()
                with self.subTest(shape=shape, bf16=bf16):
                    is_close = np.isclose(ours, its, rtol=1e-5, atol=2e-5 if bf16 else 1e-6)
                    self.assertGreaterEqual(is_close.mean(), 0.995 if bf16 else 1)
                    np.testing.assert_allclose(ours, its, rtol=1e-4, atol=1e-4)

    def test_adamw(self) -> None:
        for decay in (0.0, 0.3):
            make = partial(torch.optim.AdamW, lr=1e-2, weight_decay=decay)
            self.compare("adamw", make, learning_rate=1e-2, weight_decay=decay)

    def test_sgd(self) -> None:
        for nesterov in (False, True):
            make = partial(
                torch.optim.SGD, lr=1e-2, momentum=0.9, weight_decay=0.1, nesterov=nesterov
            )
            self.compare("sgd", make, learning_rate=1e-2, weight_decay=0.1, nesterov=int(nesterov))

    def test_lamb(self) -> None:
        for decay in (0.0, 0.1):
            make = partial(
                timm.optim.Lamb, weight_decay=decay, max_grad_norm=None, always_adapt=True
            )
            self.compare("lamb", make, weight_decay=decay)

    def test_lars(self) -> None:
        for decay in (0.0, 0.1):
            make = partial(
                timm.optim.Lars,
                lr=0.1,
                momentum=0.9,
                weight_decay=decay,
                trust_coeff=1e-3,
                always_adapt=True,
            )
            self.compare("lars", make, weight_decay=decay)

    def test_novograd(self) -> None:
        for averages in (False, True):
            make = partial(
                timm.optim.NvNovoGrad,
                lr=1e-2,
                betas=(0.95, 0.98),
                weight_decay=1e-2,
                grad_averaging=averages,
            )
            self.compare(
                "novograd",
                make,
                kept=("exp_avg",),
                weight_decay=1e-2,
                averages_gradients=int(averages),
            )

    def compare_adafactor(self, make: Make, **options: float) -> None:
        settings = {"learning_rate": 0, "warms_up": 0, "beta1": 0, "weight_decay": 0} | options
        for shape in ((1000,), (2, 3), (33, 65), (200, 100)):
            rows = 0 if len(shape) == 1 else shape[0]
            self.compare("adafactor", make, (shape,), ("exp_avg",), rows=rows, **settings)

    def test_adafactor_is_that_of_timm(self) -> None:
        make = partial(timm.optim.Adafactor, min_dim_size_to_factor=1)
        self.compare_adafactor(make)
        self.compare_adafactor(partial(make, warmup_init=True), warms_up=1)
        self.compare_adafactor(
            partial(make, betas=(0.9, 0.999), weight_decay=0.1), beta1=0.9, weight_decay=0.1
        )

    def test_adafactor_is_that_of_pytorch_optimizer(self) -> None:
        make = partial(pytorch_optimizer.AdaFactor, momentum_dtype=torch.float32)
        self.compare_adafactor(partial(make, betas=(None, 0.999)))
        self.compare_adafactor(
            partial(make, lr=0.05, relative_step=False, weight_decay=0.1),
            learning_rate=0.05,
            beta1=0.9,
            weight_decay=0.1,
        )

    def test_adafactor_is_that_of_torch_without_decay(self) -> None:
        self.compare_adafactor(torch.optim.Adafactor)


if __name__ == "__main__":
    judging.main()
