"""Peers of the detection kernels."""

from __future__ import annotations

from registry import Inputs, Outputs, Peer, peer


@peer("nms", "torchvision")
def nms_torchvision(inputs: Inputs, threads: int) -> Peer:
    import torch
    import torchvision

    torch.set_num_threads(threads)
    boxes, scores, classes = (
        torch.from_numpy(inputs.tensors[name]) for name in ("boxes", "scores", "classes")
    )
    has_classes = bool((classes != classes[0]).any())

    def run() -> Outputs:
        if has_classes:
            return {"kept": torchvision.ops.batched_nms(boxes, scores, classes, 0.5)}
        return {"kept": torchvision.ops.nms(boxes, scores, 0.5)}

    return Peer(f"torchvision {torchvision.__version__}", run)
