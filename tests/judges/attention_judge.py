"""Attention, judged by torch's scaled_dot_product_attention in f64, sequence by sequence."""

from __future__ import annotations

import unittest

import judging

judging.require("numpy", "torch", "safetensors")

import numpy as np  # noqa: E402
import torch  # noqa: E402

NAMES = ("q", "k", "v", "gradient_out")


def exact(
    tensors: dict[str, np.ndarray], lengths: list[int], is_causal: bool
) -> dict[str, np.ndarray]:
    """out and the gradients; a bias is an additive mask, into which causality goes too."""
    parts: dict[str, list[np.ndarray]] = {}
    begin = 0
    for n in lengths:
        rows = slice(begin, begin + n)
        begin += n
        if n == 0:
            continue
        q, k, v, gradient = (
            torch.from_numpy(tensors[name][rows].astype(np.float64)).transpose(0, 1)
            for name in NAMES
        )
        for tensor in (q, k, v):
            tensor.requires_grad_()
        mask = torch.zeros(n, n, dtype=torch.float64)
        if is_causal:
            mask = mask.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        if "bias" in tensors:
            mask = mask + torch.from_numpy(tensors["bias"][:, :n, :n].astype(np.float64))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        made = dict(
            zip(
                ("gradient_q", "gradient_k", "gradient_v"),
                torch.autograd.grad(out, (q, k, v), gradient),
                strict=True,
            )
        )
        for name, tensor in (made | {"out": out.detach()}).items():
            parts.setdefault(name, []).append(tensor.transpose(0, 1).numpy())
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


class Attention(unittest.TestCase):
    def test_torch(self) -> None:
        random = np.random.default_rng(1)
        for heads, width, lengths in [
            (2, 64, [512, 0, 77]),
            (3, 16, [1, 48, 49, 129]),
            (1, 24, [300]),
            (2, 100, [17, 128]),
        ]:
            for is_causal in (False, True):
                for has_bias in (False, True):
                    shape = (sum(lengths), heads, width)
                    tensors = {name: random.normal(size=shape).astype(np.float32) for name in NAMES}
                    if has_bias:
                        bias = random.normal(size=(heads, max(lengths), max(lengths)))
                        tensors["bias"] = bias.astype(np.float32)
                    offsets = np.cumsum([0, *lengths]).astype(np.int64)
                    ours = judging.call(
                        "attention", tensors | {"offsets": offsets}, is_causal=int(is_causal)
                    )
                    for name, judge in exact(tensors, lengths, is_causal).items():
                        np.testing.assert_allclose(ours[name], judge, rtol=4e-6, atol=4e-6)

    def test_names_the_sequence(self) -> None:
        tensors = {name: np.zeros((3, 1, 1), np.float32) for name in NAMES}
        offsets = np.array([0, 3, 2], np.int64)
        with self.assertRaisesRegex(judging.RefusedError, "sequence 1 ends at offset 2"):
            judging.call("attention", tensors | {"offsets": offsets}, is_causal=0)


if __name__ == "__main__":
    judging.main()
