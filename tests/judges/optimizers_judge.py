"""Optimizers, judged by torch and timm."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from functools import partial
from typing import Any

import judging

judging.require("numpy", "torch", "timm")

import numpy as np  # noqa: E402
import timm.optim  # noqa: E402
import torch  # noqa: E402

Make = Callable[[list[torch.nn.Parameter]], Any]


class Optimizers(unittest.TestCase):
    def compare(self, name: str, make: Make, **options: float) -> None:
        """Five steps of a tensor of each size."""
        random = np.random.default_rng(1)
        for size in (1, 1000, 20_000):
            start = random.normal(size=size).astype(np.float32)
            gradients = random.normal(size=(5, size)).astype(np.float32)
            parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
            judge = make([parameter])
            for gradient in gradients:
                parameter.grad = torch.from_numpy(gradient.copy())
                judge.step()
            ours = judging.call(name, {"parameter": start, "gradient": gradients}, **options)
            its = parameter.detach().numpy()
            np.testing.assert_allclose(ours["parameter"], its, rtol=1e-5, atol=1e-6)

    def test_adamw(self) -> None:
        for decay in (0.0, 0.3):
            self.compare(
                "adamw",
                partial(torch.optim.AdamW, lr=1e-2, weight_decay=decay),
                learning_rate=1e-2,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-8,
                weight_decay=decay,
            )

    def test_lamb(self) -> None:
        for decay in (0.0, 0.1):
            self.compare(
                "lamb",
                partial(
                    timm.optim.Lamb,
                    lr=1e-3,
                    weight_decay=decay,
                    max_grad_norm=None,
                    always_adapt=True,
                ),
                weight_decay=decay,
            )

    def test_lars(self) -> None:
        for decay in (0.0, 0.1):
            self.compare(
                "lars",
                partial(
                    timm.optim.Lars,
                    lr=0.1,
                    momentum=0.9,
                    weight_decay=decay,
                    trust_coeff=1e-3,
                    always_adapt=True,
                ),
                weight_decay=decay,
            )

    def test_novograd(self) -> None:
        for averages in (False, True):
            self.compare(
                "novograd",
                partial(
                    timm.optim.NvNovoGrad,
                    lr=1e-2,
                    betas=(0.95, 0.98),
                    weight_decay=1e-2,
                    grad_averaging=averages,
                ),
                weight_decay=1e-2,
                averages_gradients=int(averages),
            )


if __name__ == "__main__":
    judging.main()
