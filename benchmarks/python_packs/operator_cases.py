"""Norms, attention, the transducer: forward and backward."""

from pathlib import Path

import numpy as np
import torch

import trireme.nn
import trireme.speech
import trireme.text
from case import Case, beside, case, random
from registry import PEERS, Inputs, Outputs


def norm_case(threads: int, is_last: bool) -> Case:
    shape = (8, 56, 56, 256) if is_last else (8, 256, 56, 56)
    names = ("x", "residual", "gradient_y")
    generator = random()
    tensors = {name: generator.standard_normal(shape).astype(np.float32) for name in names}
    # Where ReLU's input is nearly 0 rounding decides; no gradient comes from there.
    axes = tuple(i for i in range(4) if i != (3 if is_last else 1))
    x64 = tensors["x"].astype(np.float64)
    normal = (x64 - x64.mean(axes, keepdims=True)) / x64.std(axes, keepdims=True)
    tensors["gradient_y"][np.abs(normal + 1 + tensors["residual"]) < 1e-3] = 0
    tensors |= {name: np.ones(256, np.float32) for name in ("gamma", "beta")}
    x, residual, gradient = (
        torch.from_numpy(tensors[name]).permute(0, 3, 1, 2)
        if is_last
        else torch.from_numpy(tensors[name])
        for name in names
    )
    norm = trireme.nn.BatchNorm2d(256, track_running_stats=False, relu=True)
    torch.nn.init.ones_(norm.bias)
    inputs = (x.requires_grad_(), residual.requires_grad_(), norm.weight, norm.bias)

    def run() -> Outputs:
        y = norm(x, residual)
        made = (y.detach(), *torch.autograd.grad(y, inputs, gradient))
        images = [v.permute(0, 2, 3, 1) if is_last else v for v in made[:3]]
        names = ("y", "gradient_x", "gradient_residual", "gradient_gamma", "gradient_beta")
        return dict(zip(names, (*images, *made[3:]), strict=True))

    return beside(
        "bn_add_relu", "torch", threads, tensors, run, 1e-3, channels_last=str(int(is_last))
    )


@case("bn_add_relu/8x256x56x56")
def norm_first(threads: int) -> Case:
    return norm_case(threads, False)


@case("bn_add_relu/channels_last")
def norm_last(threads: int) -> Case:
    return norm_case(threads, True)


def attention_case(threads: int, dropout_p: float) -> Case:
    names = ("q", "k", "v", "gradient_out")
    tensors = {
        name: random().standard_normal((4, 512, 16, 64)).astype(np.float32) for name in names
    }
    tensors["k"] = tensors["k"][:, ::-1].copy()
    q, k, v = (torch.from_numpy(tensors[name]).requires_grad_() for name in "qkv")
    gradient = torch.from_numpy(tensors["gradient_out"])

    def run() -> Outputs:
        out = trireme.text.attention(q, k, v, dropout_p=dropout_p)
        gradients = torch.autograd.grad(out, (q, k, v), gradient)
        if dropout_p > 0:
            return {}  # draws differ
        names = ("out", "gradient_q", "gradient_k", "gradient_v")
        return dict(zip(names, (out.detach(), *gradients), strict=True))

    made = beside("attention", "torch", threads, tensors, run, drop_probability=str(dropout_p))
    if dropout_p == 0:
        peer = PEERS["attention", "torch"](
            Inputs(tensors, {"drop_probability": "0"}, Path()), threads
        )
        assert peer.check is not None
        expected = peer.check()
        run_peer = made.theirs

        def theirs() -> Outputs:
            run_peer()
            return expected

        made.theirs = theirs
    return made


@case("attention/4x512x16x64")
def attention(threads: int) -> Case:
    return attention_case(threads, 0)


@case("attention/dropout")
def attention_dropout(threads: int) -> Case:
    return attention_case(threads, 0.1)


@case("transducer_loss/8x150x20x1024")
def transducer_loss(threads: int) -> Case:
    tensors = {
        "logits": random().standard_normal((8, 150, 20, 1024)).astype(np.float32),
        "labels": random().integers(1, 1024, (8, 19)).astype(np.int32),
        "frames": np.full(8, 150, np.int32),
        "lengths": np.full(8, 19, np.int32),
    }
    logits = torch.from_numpy(tensors["logits"]).requires_grad_()
    lengths = [torch.from_numpy(tensors[name]) for name in ("labels", "frames", "lengths")]

    def run() -> Outputs:
        loss = trireme.speech.transducer_loss(logits, lengths[0], lengths[1], lengths[2])
        (gradient,) = torch.autograd.grad(loss.sum(), logits)
        return {"loss": loss.detach(), "gradient": gradient}

    made = beside("transducer_loss", "torch", threads, tensors, run, dtype="float32")
    run_peer = made.theirs

    def theirs() -> Outputs:
        ((loss, gradient),) = run_peer()
        return {"loss": loss, "gradient": gradient}

    made.theirs = theirs
    return made
