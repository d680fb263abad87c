"""Peers of the transducer's loss and joint: torch, which has neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dropout_checks import identity, statistics
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
    """Autograd for the lattice; the gradient of the logits by hand, in place.

    The whole batch where all lengths are equal, else one sample after the other.
    """
    import torch

    torch.set_num_threads(threads)
    dtype = getattr(torch, inputs.options["dtype"])
    logits = torch.from_numpy(inputs.tensors["logits"]).to(dtype)
    labels = torch.from_numpy(inputs.tensors["labels"])
    frames, lengths = inputs.tensors["frames"].tolist(), inputs.tensors["lengths"].tolist()
    is_even = len(set(frames)) == 1 and len(set(lengths)) == 1

    def both(x: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = x.float()
        index = labels.long()[:, None, :, None].expand(-1, x.shape[1], -1, 1)
        log_sum = wide.logsumexp(-1)
        blank, label = (y.requires_grad_() for y in log_probabilities(wide, labels, log_sum))
        loss = lattice_loss(blank, label)
        loss.sum().backward()
        assert blank.grad is not None and label.grad is not None
        on_blank, on_label = blank.grad.float(), label.grad.float()
        met = -on_blank
        met[:, :, :-1] -= on_label
        gradient = (wide - log_sum[..., None]).exp_().mul_(met[..., None])
        gradient[..., 0] += on_blank
        gradient[:, :, :-1].scatter_add_(-1, index, on_label[..., None])
        return loss.detach(), gradient.to(dtype)

    def run() -> list[tuple[torch.Tensor, torch.Tensor]]:
        if is_even:
            return [both(logits, labels)]
        return [
            both(logits[b : b + 1, :t, : u + 1], labels[b : b + 1, :u])
            for b, (t, u) in enumerate(zip(frames, lengths, strict=True))
        ]

    def check() -> Outputs:
        made = run()
        loss = torch.cat([one for one, _ in made]).float()
        if is_even:
            return {"loss": loss, "gradient": made[0][1].float()}
        gradient = torch.zeros(logits.shape)
        for b, (_, one) in enumerate(made):
            gradient[b, : one.shape[1], : one.shape[2]] = one[0].float()
        return {"loss": loss, "gradient": gradient}

    return Peer(f"torch {torch.__version__}, softmax's gradient by hand", run, check)


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
    dtype = getattr(torch, inputs.options["dtype"])
    f, g = (torch.from_numpy(inputs.tensors[name]).to(dtype).requires_grad_() for name in "fg")
    dout = torch.from_numpy(inputs.tensors["dout"]).to(dtype)
    drop_probability = float(inputs.options["drop_probability"])
    has_padding = bool((dout[:, :, -1] == 0).all(-1).any())

    def made(probability: float) -> dict[str, torch.Tensor]:
        f.grad = g.grad = None
        out = (f[:, :, None] + g[:, None]).relu_()
        if probability > 0:
            out = torch.nn.functional.dropout(out, probability)
        out.backward(dout)
        assert f.grad is not None and g.grad is not None
        return {"df": f.grad, "dg": g.grad, "out": out.detach()}

    def run() -> None:
        made(drop_probability)

    def check() -> Outputs:
        dropped = made(drop_probability)
        if has_padding:
            del dropped["out"]
        if drop_probability == 0:
            return {name: tensor.float() for name, tensor in dropped.items()}
        plain = made(0)
        outputs: Outputs = {}
        for name, tensor in dropped.items():
            outputs |= statistics(name, tensor, plain[name])
        sums = [(dropped["df"], f), (dropped["dg"], g)]
        return outputs | identity("out_of_inputs", sums, [(dout, dropped["out"])])

    return Peer(f"torch {torch.__version__}", run, check)
