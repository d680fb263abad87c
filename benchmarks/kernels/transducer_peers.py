"""Peers of the transducer's loss and joint: torch, which has neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from registry import Inputs, Outputs, Peer, peer

if TYPE_CHECKING:
    import torch


def lattice_loss(blank: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """[B] from the log-probabilities [B, T, U] of blanks and [B, T, U - 1] of next labels.

    All samples have the same lengths. A frame's alphas at once: with c(u) the sum of the labels'
    before u, alpha(t, u) - c(u) = log of the sum over v <= u of
    exp(alpha(t-1, v) + b(t-1, v) - c(v)).
    """
    import torch

    sums = torch.nn.functional.pad(label.cumsum(-1), (1, 0))
    alpha = sums[:, 0]
    for t in range(1, blank.shape[1]):
        alpha = sums[:, t] + (alpha + blank[:, t - 1] - sums[:, t]).logcumsumexp(-1)
    return -(alpha + blank[:, -1])[:, -1]


def log_probabilities(
    logits: torch.Tensor, labels: torch.Tensor, log_sum: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """In f64, as ours: alphas of some 1,000 in f32 leave 3 digits of a gradient; it costs 5 ms."""
    log_sum = log_sum.double()
    blank = logits[..., 0] - log_sum
    index = labels.long()[:, None, :, None].expand(-1, logits.shape[1], -1, 1)
    label = logits[:, :, :-1].gather(-1, index)[..., 0] - log_sum[:, :, :-1]
    return blank, label


@peer("transducer_loss", "torch")
def transducer_loss_torch(inputs: Inputs, threads: int) -> Peer:
    """Autograd for the lattice; the gradient of the logits by hand, in place."""
    import torch

    torch.set_num_threads(threads)
    logits = torch.from_numpy(inputs.tensors["logits"])
    labels = torch.from_numpy(inputs.tensors["labels"])
    index = labels.long()[:, None, :, None].expand(-1, logits.shape[1], -1, 1)

    def run() -> Outputs:
        log_sum = logits.logsumexp(-1)
        blank, label = (x.requires_grad_() for x in log_probabilities(logits, labels, log_sum))
        loss = lattice_loss(blank, label)
        loss.sum().backward()
        assert blank.grad is not None and label.grad is not None
        on_blank, on_label = blank.grad.float(), label.grad.float()
        met = -on_blank
        met[:, :, :-1] -= on_label
        gradient = (logits - log_sum[..., None]).exp_().mul_(met[..., None])
        gradient[..., 0] += on_blank
        gradient[:, :, :-1].scatter_add_(-1, index, on_label[..., None])
        return {"loss": loss, "gradient": gradient}

    return Peer(f"torch {torch.__version__}, softmax's gradient by hand", run)


@peer("transducer_loss", "torch_autograd")
def transducer_loss_torch_autograd(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    logits = torch.from_numpy(inputs.tensors["logits"]).requires_grad_()
    labels = torch.from_numpy(inputs.tensors["labels"])

    def run() -> Outputs:
        logits.grad = None
        loss = lattice_loss(*log_probabilities(logits, labels, logits.logsumexp(-1)))
        loss.sum().backward()
        assert logits.grad is not None
        return {"loss": loss, "gradient": logits.grad}

    return Peer(f"torch {torch.__version__} autograd", run)


@peer("joint", "torch")
def joint_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    f, g = (torch.from_numpy(inputs.tensors[name]).requires_grad_() for name in "fg")
    dout = torch.from_numpy(inputs.tensors["dout"])
    drop_probability = float(inputs.options["drop_probability"])
    has_padding = bool((dout[:, :, -1] == 0).all(-1).any())

    def run() -> Outputs:
        f.grad = g.grad = None
        out = (f[:, :, None] + g[:, None]).relu_()
        if drop_probability > 0:
            out = torch.nn.functional.dropout(out, drop_probability)
        out.backward(dout)
        assert f.grad is not None and g.grad is not None
        if drop_probability > 0:
            return {"mean": np.array([out.detach().double().mean().item()])}
        made = {"df": f.grad, "dg": g.grad}
        return made if has_padding else made | {"out": out}

    return Peer(f"torch {torch.__version__}", run)
