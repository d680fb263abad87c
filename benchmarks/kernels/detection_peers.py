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


@peer("roi_align", "torchvision")
def roi_align_torchvision(inputs: Inputs, threads: int) -> Peer:
    """torchvision has its channels first, its own layout: it is given them so."""
    import torch
    import torchvision

    torch.set_num_threads(threads)
    features = torch.from_numpy(inputs.tensors["features"]).permute(0, 3, 1, 2).contiguous()
    regions = torch.from_numpy(inputs.tensors["regions"])
    has_backward = "has_backward" in inputs.options
    features.requires_grad_(has_backward)

    def run() -> Outputs:
        out = torchvision.ops.roi_align(features, regions, 7, 1.0, 2, aligned=True)
        outputs = {"out": out.detach().permute(0, 2, 3, 1)}
        if has_backward:
            features.grad = None
            out.backward(out.detach())
            outputs["gradient"] = features.grad.permute(0, 2, 3, 1)
        return outputs

    return Peer(f"torchvision {torchvision.__version__}", run)


@peer("overlaps", "torchvision")
def overlaps_torchvision(inputs: Inputs, threads: int) -> Peer:
    import torch
    import torchvision

    torch.set_num_threads(threads)
    boxes = torch.from_numpy(inputs.tensors["boxes"])
    num_truth = int(inputs.options["num_truth"])
    truth, anchors = boxes[:num_truth], boxes[num_truth:]

    def run() -> Outputs:
        return {"overlaps": torchvision.ops.box_iou(truth, anchors)}

    return Peer(f"torchvision {torchvision.__version__}", run)


@peer("matching", "torchvision")
def matching_torchvision(inputs: Inputs, threads: int) -> Peer:
    import torch
    import torchvision
    from torchvision.models.detection._utils import Matcher

    torch.set_num_threads(threads)
    overlaps = torch.from_numpy(inputs.tensors["overlaps"])
    matcher = Matcher(0.7, 0.3, allow_low_quality_matches=True)

    def run() -> Outputs:
        return {"matches": matcher(overlaps)}

    return Peer(f"torchvision {torchvision.__version__}", run)


@peer("box_codes", "torchvision")
def box_codes_torchvision(inputs: Inputs, threads: int) -> Peer:
    import torch
    import torchvision
    from torchvision.models.detection._utils import BoxCoder

    torch.set_num_threads(threads)
    boxes, anchors = torch.from_numpy(inputs.tensors["boxes"]).chunk(2)
    coder = BoxCoder((10.0, 10.0, 5.0, 5.0))

    def run() -> Outputs:
        codes = coder.encode_single(boxes, anchors)
        return {"codes": codes, "decoded": coder.decode_single(codes, anchors)}

    return Peer(f"torchvision {torchvision.__version__}", run)
