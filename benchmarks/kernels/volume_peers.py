"""Peers of components, Dice and sliding windows: libraries, or what a user would write."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from registry import Inputs, Outputs, Peer, peer

Found = tuple[list[int], list[tuple[slice, ...]]]  # sizes and boxes of components


def rows(found: Found) -> Outputs:
    """As `outputs` of ComponentsCase."""
    sizes, boxes = found
    listed = [
        [size, *(s.start for s in box), *(s.stop for s in box)]
        for size, box in zip(sizes, boxes, strict=True)
    ]
    return {"components": np.array(sorted(listed), dtype=np.int64)}


@peer("components", "cc3d")
def components_cc3d(inputs: Inputs, threads: int) -> Peer:
    """All labels in one pass; sizes and boxes by its statistics, which also hold centroids."""
    import cc3d

    labels = inputs.tensors["labels"]

    def run() -> Found:
        found = cc3d.connected_components(labels, connectivity=26)
        statistics = cc3d.statistics(found)
        return statistics["voxel_counts"][1:].tolist(), statistics["bounding_boxes"][1:]

    name = f"connected-components-3d {version('connected-components-3d')}"
    return Peer(name, run, lambda: rows(run()))


@peer("components", "scipy")
def components_scipy(inputs: Inputs, threads: int) -> Peer:
    import scipy
    from scipy import ndimage

    labels = inputs.tensors["labels"]
    corners = np.ones((3, 3, 3))

    def run() -> Found:
        sizes: list[int] = []
        boxes: list[tuple[slice, ...]] = []
        for label in (1, 2):
            found, _ = ndimage.label(labels == label, corners)
            sizes += np.bincount(found.ravel())[1:].tolist()
            boxes += ndimage.find_objects(found)
        return sizes, boxes

    return Peer(f"scipy {scipy.__version__}", run, lambda: rows(run()))


@peer("dice", "numpy")
def dice_numpy(inputs: Inputs, threads: int) -> Peer:
    predicted, expected = inputs.tensors["predicted"], inputs.tensors["expected"]

    def run() -> Outputs:
        dice = []
        for label in range(3):
            p, t = predicted == label, expected == label
            both = np.count_nonzero(p & t)
            dice.append(2 * both / (np.count_nonzero(p) + np.count_nonzero(t)))
        return {"dice": np.array(dice)}

    return Peer(f"numpy {np.__version__}", run)


@peer("dice", "torch")
def dice_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    predicted, expected = (torch.from_numpy(inputs.tensors[k]) for k in ("predicted", "expected"))

    def run() -> Outputs:
        dice = []
        for label in range(3):
            p, t = predicted == label, expected == label
            both = torch.count_nonzero(p & t).double()
            dice.append(2 * both / (torch.count_nonzero(p) + torch.count_nonzero(t)))
        return {"dice": torch.stack(dice)}

    return Peer(f"torch {torch.__version__}", run)


@peer("soft_dice", "torch")
def soft_dice_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    probabilities, expected = (
        torch.from_numpy(inputs.tensors[k]) for k in ("probabilities", "expected")
    )

    def run() -> Outputs:
        dice = []
        for label in range(3):
            p, t = probabilities[label], (expected == label).float()
            dice.append(2 * (p * t).sum() / (p.sum() + t.sum()))
        return {"dice": torch.stack(dice).double()}

    return Peer(f"torch {torch.__version__}", run)


@peer("soft_dice", "numpy")
def soft_dice_numpy(inputs: Inputs, threads: int) -> Peer:
    probabilities, expected = inputs.tensors["probabilities"], inputs.tensors["expected"]

    def run() -> Outputs:
        dice = []
        for label in range(3):
            p, t = probabilities[label], expected == label
            both = p.sum(where=t, dtype=np.float64)
            dice.append(2 * both / (p.sum(dtype=np.float64) + np.count_nonzero(t)))
        return {"dice": np.array(dice)}

    return Peer(f"numpy {np.__version__}", run)


def gaussian(side: int) -> np.ndarray:
    """MONAI's importance map."""
    axis = np.exp(-((np.arange(side) - (side - 1) / 2) ** 2) / (2 * (0.125 * side) ** 2))
    product = axis[:, None, None] * axis[:, None] * axis
    return np.maximum(product, 1e-3).astype(np.float32)


@peer("sliding_window", "torch")
def sliding_window_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    logits = torch.from_numpy(inputs.tensors["logits"])
    classes, side = logits.shape[:2]
    volume = inputs.tensors["volume"].tolist()
    places = [
        tuple(slice(b, b + side) for b in row) for row in inputs.tensors["positions"].tolist()
    ]

    def run() -> Outputs:
        weight = torch.from_numpy(gaussian(side))
        total, norm = torch.zeros(classes, *volume), torch.zeros(*volume)
        for place in places:
            total[(slice(None), *place)] += logits * weight
            norm[place] += weight
        total /= norm
        return {"means": total, "labels": total.argmax(0)}

    return Peer(f"torch {torch.__version__}", run)


@peer("sliding_window", "numpy")
def sliding_window_numpy(inputs: Inputs, threads: int) -> Peer:
    logits = inputs.tensors["logits"]
    classes, side = logits.shape[:2]
    volume = inputs.tensors["volume"].tolist()
    places = [
        tuple(slice(b, b + side) for b in row) for row in inputs.tensors["positions"].tolist()
    ]

    def run() -> Outputs:
        weight = gaussian(side)
        total = np.zeros((classes, *volume), np.float32)
        norm = np.zeros(volume, np.float32)
        for place in places:
            total[(slice(None), *place)] += logits * weight
            norm[place] += weight
        total /= norm
        return {"means": total, "labels": total.argmax(0)}

    return Peer(f"numpy {np.__version__}", run)
