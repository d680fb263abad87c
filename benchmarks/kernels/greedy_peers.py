"""Peers of greedy transducer decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from registry import Inputs, Outputs, Peer, peer

if TYPE_CHECKING:
    import torch

ROUNDS_TO_A_CHECK = 16


def padded(emitted: torch.Tensor) -> torch.Tensor:
    """Rows of [B, rounds] without their -1s, which then fill them up to the longest."""
    import torch

    is_label = emitted >= 0
    lengths = is_label.sum(1, keepdim=True)
    labels = emitted.new_full((len(emitted), int(lengths.max())), -1)
    labels[torch.arange(labels.shape[1]) < lengths] = emitted[is_label]
    return labels


@peer("greedy", "torch")
def greedy_torch(inputs: Inputs, threads: int) -> Peer:
    """The whole batch in each round, as NVIDIA's entry for MLPerf decodes.

    Python is asked only every 16 rounds whether all samples are done.
    """
    import torch

    torch.set_num_threads(threads)
    f, embedding, recurrent, out, bias, num_frames = (
        torch.from_numpy(inputs.tensors[name])
        for name in ("f", "embedding", "recurrent", "out", "bias", "num_frames")
    )
    samples, frames, units = f.shape
    most_here = int(inputs.options["max_symbols_per_frame"])
    most = int(inputs.options["max_symbols"])
    rows = torch.cat((f.reshape(-1, units), f.new_zeros(1, units)))  # a frame after the last
    begins = torch.arange(samples) * frames
    ends = begins + num_frames

    def decode() -> Outputs:
        at = begins.clone()
        state = f.new_zeros(samples, units)
        here = torch.zeros(samples, dtype=torch.int64)
        total = torch.zeros(samples, dtype=torch.int64)
        active = at < ends
        emitted = []
        while active.any():
            for _ in range(ROUNDS_TO_A_CHECK):
                joined = rows.index_select(0, at).add_(state).relu_()
                best = torch.addmm(bias, joined, out).argmax(1)
                is_label = (best != 0).logical_and_(active)
                emitted.append(best.where(is_label, -1))
                moved = torch.addmm(embedding.index_select(0, best), state, recurrent).clamp_(-3, 3)
                state = moved.where(is_label[:, None], state)
                here.add_(1).mul_(is_label)
                total.add_(is_label)
                moves = (here == most_here).logical_or_(~is_label).logical_and_(active)
                here.masked_fill_(moves, 0)
                at.add_(moves)
                active = (at < ends).logical_and_(total < most)
        return {"labels": padded(torch.stack(emitted, 1))}

    def run() -> Outputs:
        with torch.inference_mode():
            return decode()

    return Peer(f"torch {torch.__version__}", run)


@peer("greedy", "numpy")
def greedy_numpy(inputs: Inputs, threads: int) -> Peer:
    """The same rounds by NumPy, whose calls cost a fraction of torch's: at this size they are all.

    The sums of integers are exact, in whatever order.
    """
    names = ("f", "embedding", "recurrent", "out", "bias", "num_frames")
    f, embedding, recurrent, out, bias, num_frames = (inputs.tensors[name] for name in names)
    samples, frames, units = f.shape
    most_here = int(inputs.options["max_symbols_per_frame"])
    most = int(inputs.options["max_symbols"])
    rows = np.concatenate((f.reshape(-1, units), np.zeros((1, units), f.dtype)))
    begins = np.arange(samples) * frames
    ends = begins + num_frames

    def run() -> Outputs:
        at = begins.copy()
        state = np.zeros((samples, units), f.dtype)
        here, total = np.zeros(samples, np.int64), np.zeros(samples, np.int64)
        active = at < ends
        emitted = []
        while active.any():
            joined = rows.take(at, 0)
            joined += state
            np.maximum(joined, 0, out=joined)
            scores = joined @ out
            scores += bias
            best = scores.argmax(1)
            is_label = (best != 0) & active
            emitted.append(np.where(is_label, best, -1))
            moved = state @ recurrent
            moved += embedding.take(best, 0)
            np.clip(moved, -3, 3, out=moved)
            state[is_label] = moved[is_label]
            here += 1
            here *= is_label
            total += is_label
            moves = ((here == most_here) | ~is_label) & active
            here[moves] = 0
            at += moves
            active = (at < ends) & (total < most)
        rounds = np.stack(emitted, 1)
        lengths = (rounds >= 0).sum(1)
        labels = np.full((samples, lengths.max()), -1, np.int64)
        labels[np.arange(labels.shape[1]) < lengths[:, None]] = rounds[rounds >= 0]
        return {"labels": labels}

    return Peer(f"numpy {np.__version__}", run)
