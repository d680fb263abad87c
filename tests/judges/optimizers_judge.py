"""Optimizers, judged by torch."""

from __future__ import annotations

import unittest

import judging

judging.require("numpy", "torch")

import numpy as np  # noqa: E402
import torch  # noqa: E402


class Optimizers(unittest.TestCase):
    def test_adamw(self) -> None:
        random = np.random.default_rng(1)
        for size, decay in [(1, 0.0), (1000, 0.01), (4097, 0.3)]:
            start = random.normal(size=size).astype(np.float32)
            gradients = random.normal(size=(5, size)).astype(np.float32)
            parameter = torch.nn.Parameter(torch.from_numpy(start.copy()))
            judge = torch.optim.AdamW([parameter], lr=1e-2, weight_decay=decay)
            for gradient in gradients:
                parameter.grad = torch.from_numpy(gradient)
                judge.step()
            ours = judging.call(
                "adamw",
                {"parameter": start, "gradient": gradients},
                learning_rate=1e-2,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-8,
                weight_decay=decay,
            )
            np.testing.assert_allclose(
                ours["parameter"], parameter.detach().numpy(), rtol=1e-6, atol=1e-7
            )


if __name__ == "__main__":
    judging.main()
