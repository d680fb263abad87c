"""Volumes: NIfTI files as samples; connected components in 3 dimensions, with the arguments of cc3d; Dice.

    labels, count = trireme.volume.connected_components(volume, connectivity=26, return_N=True)
    sizes = trireme.volume.statistics(labels)["voxel_counts"]

Arrays are numpy's. Computed on torch's threads, which change no bit; formulas and cost: packs/volume/kernels.
"""

from typing import Any

import numpy as np

from trireme import _packs
from trireme._packs import Components
from trireme.pack_sources import RandomPatch as RandomPatch
from trireme.pack_sources import open_volumes as open_volumes

_IN_3D = {6: 6, 18: 18, 26: 26}
_IN_2D = {4: 6, 8: 26}


def connected_components(
    data: Any,
    connectivity: int | None = None,
    return_N: bool = False,  # noqa: N803  cc3d's name
    out_dtype: Any = None,
) -> Any:
    """Numbers the components of all labels at once: neighbours of equal label belong together, 0 is background. As
    `cc3d.connected_components`, but numbered in the order of their first voxels.

    data           [depth, height, width] or [height, width]; bool or integers of at most 32 bits. C order saves a copy.
    connectivity   6 (faces), 18 (or edges), 26 (or corners), the default; in 2 dimensions 4 or 8, the default.
    return_N       also how many there are.
    Returns        i32, or `out_dtype`, of the shape of `data`.
    Errors         ValueError for other types and shapes; trireme.Error from 2^31 voxels.
    Cost           nearly linear; grows with the surface of components, not with their volume.
    """
    array = _integers(data)
    found = find_components(array, connectivity)
    made = found.map.reshape(array.shape)
    if out_dtype is not None:
        if len(found.sizes) > np.iinfo(out_dtype).max:
            raise ValueError(
                f"there are {len(found.sizes)} components, more than {out_dtype} holds"
            )
        made = made.astype(out_dtype)
    return (made, len(found.sizes)) if return_N else made


def find_components(data: Any, connectivity: int | None = None) -> Components:
    """The same with what is known of each: `labels` i32 [N], `sizes` i64 [N] in voxels, `boxes` i64 [N, 2, 3] first
    voxel and the one behind the last, z, y, x; `map` i32 [depth, height, width], components from 1."""
    array = _integers(data)
    known = _IN_3D if array.ndim == 3 else _IN_2D
    if connectivity is None:
        connectivity = max(known)
    if connectivity not in known:
        raise ValueError(
            f"connectivity is {connectivity}; in {array.ndim} dimensions it is one of {', '.join(map(str, known))}"
        )
    run = (
        _packs.connected_components_u8
        if array.dtype == np.uint8
        else _packs.connected_components_i32
    )
    return run(array.reshape((1,) * (3 - array.ndim) + array.shape), known[connectivity])


def statistics(out_labels: Any) -> dict[str, Any]:
    """Sizes, boxes and centres of labels, connected or not, from 0 (background) to the largest. As `cc3d.statistics`.

    Returns   `voxel_counts` i64 [N + 1]; `bounding_boxes`, a tuple of slices a label (empty ones where there is no
              such label); `centroids` f64 [N + 1, dimensions], NaN likewise.
    """
    array = _integers(out_labels).astype(np.int32, copy=False)
    if array.min(initial=0) < 0:
        raise ValueError(f"labels are 0 or more, and one is {array.min()}")
    volume = array.reshape((1,) * (3 - array.ndim) + array.shape)
    count = int(array.max(initial=0)) + 1
    # Background is no label to the kernel.
    found = _packs.connected_components_i32(volume + 1 if array.size else volume, 6)
    sizes = np.zeros(count, np.int64)
    begins, ends = np.full((count, 3), np.iinfo(np.int64).max), np.zeros((count, 3), np.int64)
    np.add.at(sizes, found.labels - 1, found.sizes)
    np.minimum.at(begins, found.labels - 1, found.boxes[:, 0])
    np.maximum.at(ends, found.labels - 1, found.boxes[:, 1])
    begins[sizes == 0] = 0
    skipped = 3 - array.ndim
    return {
        "voxel_counts": sizes,
        "bounding_boxes": [
            tuple(slice(int(b), int(e)) for b, e in zip(*sides, strict=True))
            for sides in zip(begins[:, skipped:], ends[:, skipped:], strict=True)
        ],
        "centroids": _packs.centroids(volume, count)[:, skipped:],
    }


def dice(prediction: Any, truth: Any, num_classes: int, smoothing: float = 0.0) -> np.ndarray:
    """The overlap 2 |P and T| / (|P| + |T|) of each class's voxels P in a prediction with those T in the truth.

    prediction, truth   labels from 0 to num_classes - 1, [depth, height, width] or [height, width]; bool or integers.
    smoothing           added to numerator and denominator; MLPerf's is 1e-6.
    Returns    f64 [num_classes], background included; NaN of a class that is in neither, where nothing smooths.
    Errors     ValueError for other types and shapes; trireme.Error naming the voxel whose label is out of range.
    Source     Dice, "Measures of the amount of ecologic association between species", 1945.
    """
    volumes = [_integers(labels).astype(np.int32, copy=False) for labels in (prediction, truth)]
    if volumes[0].shape != volumes[1].shape:
        raise ValueError(
            f"the prediction has shape {list(volumes[0].shape)}, the truth {list(volumes[1].shape)}; give both alike"
        )
    shape = (1,) * (3 - volumes[0].ndim) + volumes[0].shape
    return _packs.dice(num_classes, volumes[0].reshape(shape), volumes[1].reshape(shape), smoothing)


def _integers(data: Any) -> np.ndarray:
    """u8 or i32, in 2 or 3 dimensions."""
    array = np.asarray(data)
    if array.ndim not in (2, 3) or array.dtype.kind not in "biu":
        raise ValueError(
            f"the volume has shape {list(array.shape)} and type {array.dtype}; give integers or bool, [depth, height, "
            "width] or [height, width]"
        )
    if array.dtype in (np.uint8, np.int32):
        return array
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    narrow = array.astype(np.int32)
    if array.dtype.itemsize >= 4 and not np.array_equal(narrow, array):
        raise ValueError("the volume has labels that do not fit 32 bits; renumber them")
    return narrow
