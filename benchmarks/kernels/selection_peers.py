"""Peers of selections of fixed size."""

from __future__ import annotations

import numpy as np

from registry import Inputs, Outputs, Peer, peer


@peer("hard_negatives", "torch_topk")
def hard_negatives_torch_topk(inputs: Inputs, threads: int) -> Peer:
    """Only as many are sorted as the image with most of them needs."""
    import torch

    torch.set_num_threads(threads)
    losses = torch.from_numpy(inputs.tensors["losses"])
    is_matched = torch.from_numpy(inputs.tensors["matched"]).bool()
    ratio = int(inputs.options["ratio"])

    def run() -> Outputs:
        counts = ratio * is_matched.sum(1)
        most = min(int(counts.max()), losses.shape[1])
        negatives = losses.masked_fill(is_matched, -torch.inf)
        hardest = negatives.topk(most, dim=1).indices
        is_hard = torch.arange(most) < counts[:, None]
        chosen = torch.zeros_like(is_matched).scatter_(1, hardest, is_hard) | is_matched
        return {"chosen": chosen.to(torch.uint8)}

    return Peer(f"torch {torch.__version__} topk", run)


@peer("hard_negatives", "torch")
def hard_negatives_torch(inputs: Inputs, threads: int) -> Peer:
    """Ranks by sorting twice, as torchvision's SSD does."""
    import torch

    torch.set_num_threads(threads)
    losses = torch.from_numpy(inputs.tensors["losses"])
    is_matched = torch.from_numpy(inputs.tensors["matched"]).bool()
    ratio = int(inputs.options["ratio"])

    def run() -> Outputs:
        counts = ratio * is_matched.sum(1, keepdim=True)
        negatives = losses.masked_fill(is_matched, -torch.inf)
        ranks = negatives.sort(1, descending=True).indices.sort(1).indices
        return {"chosen": ((ranks < counts) | is_matched).to(torch.uint8)}

    return Peer(f"torch {torch.__version__} two sorts", run)


@peer("nonzero", "torch")
def nonzero_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    values = torch.from_numpy(inputs.tensors["values"])
    num_places = int(inputs.options["num_places"])

    def run() -> Outputs:
        found = values.nonzero()[:num_places, 0]
        return {"places": torch.cat((found, found[: num_places - len(found)]))}

    return Peer(f"torch {torch.__version__}", run)


@peer("nonzero", "numpy")
def nonzero_numpy(inputs: Inputs, threads: int) -> Peer:
    values = inputs.tensors["values"].view(bool)
    num_places = int(inputs.options["num_places"])

    def run() -> Outputs:
        found = np.flatnonzero(values)[:num_places]
        return {"places": np.concatenate((found, found[: num_places - len(found)]))}

    return Peer(f"numpy {np.__version__}", run)


@peer("permutation", "torch")
def permutation_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    n = int(inputs.options["n"])
    order = torch.empty(n, dtype=torch.int64)
    checked: list[torch.Tensor] = []  # of the first run, which is not timed

    def run() -> Outputs:
        torch.randperm(n, out=order)
        if not checked:
            checked.append(order.sort().values)
        return {"sorted": checked[0]}

    return Peer(f"torch {torch.__version__}", run)


@peer("permutation", "numpy")
def permutation_numpy(inputs: Inputs, threads: int) -> Peer:
    n = int(inputs.options["n"])
    generator = np.random.default_rng(1)
    checked: list[np.ndarray] = []

    def run() -> Outputs:
        order = generator.permutation(n)
        if not checked:
            checked.append(np.sort(order))
        return {"sorted": checked[0]}

    return Peer(f"numpy {np.__version__}", run)
