"""Peers of biased crops: what a user would write."""

from __future__ import annotations

import numpy as np

from registry import Inputs, Outputs, Peer, peer


def find_boxes(labels: np.ndarray, label: int, most: int) -> np.ndarray:
    """[objects, 2, 3] begins and ends of a label's components, the largest boxes first."""
    from scipy import ndimage

    found = ndimage.find_objects(ndimage.label(labels == label)[0])
    boxes = np.array([[[s.start for s in box], [s.stop for s in box]] for box in found])
    volumes = np.prod(boxes[:, 1] - boxes[:, 0], axis=1)
    return boxes[np.argsort(-volumes, kind="stable")[:most]]


@peer("crops", "numpy")
def crops_numpy(inputs: Inputs, threads: int) -> Peer:
    """All crops at once, from boxes that scipy found before."""
    labels, patch = inputs.tensors["labels"], inputs.tensors["patch"]
    share, crops = float(inputs.options["share"]), int(inputs.options["crops"])
    boxes = np.stack([find_boxes(labels, label, 2) for label in (1, 2)])
    whole = np.array([np.zeros(3, np.int64), labels.shape])
    generator = np.random.default_rng(1)

    def run() -> Outputs:
        at_object = generator.random(crops) < share
        chosen = boxes[generator.integers(2, size=crops), generator.integers(2, size=crops)]
        box = np.where(at_object[:, None, None], chosen, whole)
        one, other = box[:, 0], box[:, 1] - patch
        first = np.maximum(np.minimum(one, other), 0)
        last = np.minimum(np.maximum(one, other), labels.shape - patch)
        begins = generator.integers(first, last, endpoint=True)
        return {"share": at_object.mean()[None], "means": begins.mean(0)}

    return Peer(f"numpy {np.__version__}, all at once", run)


@peer("crops", "numpy_each")
def crops_numpy_each(inputs: Inputs, threads: int) -> Peer:
    """One after the other, as data loaders ask for them."""
    labels, patch = inputs.tensors["labels"], inputs.tensors["patch"].tolist()
    share, crops = float(inputs.options["share"]), int(inputs.options["crops"])
    boxes = [find_boxes(labels, label, 2).tolist() for label in (1, 2)]
    whole = [[0, 0, 0], list(labels.shape)]
    generator = np.random.default_rng(1)

    def choose() -> tuple[bool, list[int]]:
        draws = generator.random(6).tolist()
        at_object = draws[0] < share
        box = boxes[int(draws[1] * 2)][int(draws[2] * 2)] if at_object else whole
        begins = []
        for axis in range(3):
            one, other = box[0][axis], box[1][axis] - patch[axis]
            first = max(min(one, other), 0)
            last = min(max(one, other), labels.shape[axis] - patch[axis])
            begins.append(first + int(draws[3 + axis] * (last - first + 1)))
        return at_object, begins

    def run() -> Outputs:
        made = [choose() for _ in range(crops)]
        return {
            "share": np.array([np.mean([at_object for at_object, _ in made])]),
            "means": np.mean([begins for _, begins in made], axis=0),
        }

    return Peer(f"numpy {np.__version__}, one by one", run)
