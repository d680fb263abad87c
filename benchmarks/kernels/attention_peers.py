"""Peers of attention."""

from __future__ import annotations

from dropout_checks import identity, statistics
from registry import Inputs, Outputs, Peer, peer

NAMES = ("out", "gradient_q", "gradient_k", "gradient_v")


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

    def made(probability: float) -> dict[str, torch.Tensor]:
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=probability)
        gradients = torch.autograd.grad(out, (q, k, v), gradient_out)
        return dict(zip(NAMES, (out.detach(), *gradients), strict=True))

    def run() -> None:
        made(drop_probability)

    def check() -> Outputs:
        dropped = made(drop_probability)
        if drop_probability == 0:
            return {name: tensor.transpose(1, 2) for name, tensor in dropped.items()}
        plain = made(0)
        outputs: Outputs = {}
        for name in NAMES:
            outputs |= statistics(name, dropped[name], plain[name])
        on_v = [(dropped["gradient_v"], v)]
        return (
            outputs
            | identity("out_of_v", on_v, [(gradient_out, dropped["out"])])
            | identity("q_of_k", [(dropped["gradient_q"], q)], [(dropped["gradient_k"], k)])
        )

    return Peer(f"torch {torch.__version__}", run, check)
