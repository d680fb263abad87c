"""Peers of attention."""

from __future__ import annotations

import numpy as np

from registry import Inputs, Outputs, Peer, peer


@peer("attention", "torch")
def attention_torch(inputs: Inputs, threads: int) -> Peer:
    """Its flash kernel where there is no dropout; with dropout it has none for CPUs.

    It is given [B, H, S, D] in C order, the layout that suits it best.
    """
    import torch

    torch.set_num_threads(threads)
    q, k, v, gradient_out = (
        torch.from_numpy(inputs.tensors[name]).transpose(1, 2).contiguous()
        for name in ("q", "k", "v", "gradient_out")
    )
    for tensor in (q, k, v):
        tensor.requires_grad_()
    drop_probability = float(inputs.options["drop_probability"])
    means: list[float] = []

    def run() -> Outputs:
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=drop_probability)
        gradients = torch.autograd.grad(out, (q, k, v), gradient_out)
        if drop_probability > 0:
            if not means:
                means.append(out.detach().double().mean().item())
            return {"mean": np.array(means)}
        names = ("out", "gradient_q", "gradient_k", "gradient_v")
        made = zip(names, (out.detach(), *gradients), strict=True)
        return {name: tensor.transpose(1, 2) for name, tensor in made}

    return Peer(f"torch {torch.__version__}", run)
