"""Batch norm and instance norm, alone and with Add and ReLU, judged by torch in f64."""

from __future__ import annotations

import itertools
import unittest

import judging

judging.require("numpy", "torch")

import numpy as np  # noqa: E402
import torch  # noqa: E402


def judge(arrays: dict[str, np.ndarray], has_relu: bool) -> dict[str, np.ndarray]:
    """As torch has it: channels first."""
    tensors = {name: torch.from_numpy(array).double() for name, array in arrays.items()}
    wanted = [name for name in ("x", "residual", "gamma", "beta") if name in tensors]
    for name in wanted:
        tensors[name].requires_grad_()
    y = torch.nn.functional.batch_norm(
        tensors["x"], None, None, tensors["gamma"], tensors["beta"], training=True
    )
    if "residual" in tensors:
        y = y + tensors["residual"]
    if has_relu:
        y = y.relu()
    gradients = torch.autograd.grad(y, [tensors[n] for n in wanted], tensors["gradient_y"])
    made = {"gradient_" + name: g.numpy() for name, g in zip(wanted, gradients, strict=True)}
    return made | {"y": y.detach().numpy()}


class Normalization(unittest.TestCase):
    def test_all_forms(self) -> None:
        random = np.random.default_rng(1)
        shapes = [(2, 5, 33), (3, 16, 49), (1, 7, 300)]
        switches = list(itertools.product([False, True], repeat=4))
        for (n, c, s), switch in itertools.product(shapes, switches):
            channels_last, has_relu, has_residual, has_nan = switch
            arrays = {
                name: random.normal(size=(n, c, s)).astype(np.float32)
                for name in ("x", "residual", "gradient_y")
            }
            arrays["x"] = arrays["x"] * 2 + 3
            if not has_residual:
                del arrays["residual"]
            if has_nan:
                arrays["residual" if has_residual else "x"][0, 1, 3] = np.nan
            for name in ("gamma", "beta"):
                arrays[name] = random.normal(size=c).astype(np.float32)
            expected = judge(arrays, has_relu)
            given = {
                name: array.transpose(0, 2, 1) if channels_last and array.ndim == 3 else array
                for name, array in arrays.items()
            }
            ours = judging.call(
                "batch_norm", given, channels_last=int(channels_last), has_relu=int(has_relu)
            )
            for name, array in expected.items():
                made = ours[name]
                if channels_last and made.ndim == 3:
                    made = made.transpose(0, 2, 1)
                np.testing.assert_allclose(made, array, rtol=2e-4, atol=2e-5, err_msg=name)

    def test_an_instance_norm_is_a_batch_norm_of_one_sample(self) -> None:
        random = np.random.default_rng(2)
        x = random.normal(size=(1, 6, 4 * 5 * 6)).astype(np.float32)
        ours = judging.call(
            "batch_norm",
            {
                "x": x,
                "gradient_y": x,
                "gamma": np.ones(6, np.float32),
                "beta": np.zeros(6, np.float32),
            },
            channels_last=0,
            has_relu=0,
        )
        volume = torch.from_numpy(x).reshape(1, 6, 4, 5, 6)
        expected = torch.nn.functional.instance_norm(volume).reshape(1, 6, -1).numpy()
        np.testing.assert_allclose(ours["y"], expected, rtol=1e-4, atol=1e-5)

    def test_one_element_is_refused(self) -> None:
        one = np.ones((1, 2, 1), np.float32)
        with self.assertRaisesRegex(judging.RefusedError, "2 elements"):
            judging.call(
                "batch_norm",
                {"x": one, "gradient_y": one, "gamma": one[0, :, 0], "beta": one[0, :, 0]},
                channels_last=0,
                has_relu=0,
            )


if __name__ == "__main__":
    judging.main()
