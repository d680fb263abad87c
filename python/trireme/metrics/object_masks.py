"""Masks of objects as outputs have them, as COCO's compressed counts."""

from typing import Any

import numpy as np
import torch

from trireme.metrics.metric import output_of

_FORMS = (
    "give bool [samples, objects, height, width], floats [samples, objects, side, side] or integers [samples, objects, "
    "runs]"
)

Size = tuple[int, int]


class ObjectMasks:
    """The masks of an output [samples, objects, ..]: pixels of the image, soft masks of boxes, or runs."""

    def __init__(self, outputs: dict[str, torch.Tensor], masks: str, shape: torch.Size) -> None:
        """shape   [samples, objects], as labels have it."""
        self._name = masks
        self._masks = output_of(outputs, masks)
        if not _has_a_form(self._masks) or self._masks.shape[:2] != shape:
            raise ValueError(
                f"output {masks!r} has shape {list(self._masks.shape)} and type {self._masks.dtype}, labels have "
                f"{list(shape)}; {_FORMS}"
            )

    @property
    def common_size(self) -> Size | None:
        """Height and width that all images have; None where masks are not of pixels."""
        if self._masks.dtype != torch.bool:
            return None
        return self._masks.shape[2], self._masks.shape[3]

    def segmentation(self, sample: int, place: int, box: np.ndarray, size: Size) -> dict[str, Any]:
        """Of one object, in an image of that height and width.

        box      x, y, width, height, of soft masks.
        Errors   ValueError where it does not fit the image.
        """
        from trireme import _packs

        mask = self._masks[sample, place]
        where = f"output {self._name!r}: sample {sample}, object {place}, in an image of {size[0]} x {size[1]} pixels"
        counts: str | list[int]
        if mask.dtype == torch.bool:
            counts = _packs.runs_of_pixels(_cropped(mask, size, where).numpy())
        elif mask.is_floating_point():
            x, y, width, height = box.tolist()
            corners = (x, y, x + width, y + height)
            counts = _packs.runs_of_soft_mask(mask.to(torch.float32).numpy(), corners, size)
        else:
            runs: list[int] = mask.tolist()
            counts = runs = runs[: runs.index(-1)] if -1 in runs else runs
            if min(runs, default=0) < 0 or sum(runs) != size[0] * size[1]:
                raise ValueError(f"{where}: runs have {sum(runs)} pixels together")
        return {"size": list(size), "counts": counts}


def _has_a_form(masks: torch.Tensor) -> bool:
    if masks.dtype == torch.bool:
        return masks.dim() == 4
    if masks.is_floating_point():
        return masks.dim() == 4 and masks.shape[2] == masks.shape[3]
    return masks.dim() == 3 and not masks.is_complex()


def _cropped(pixels: torch.Tensor, size: Size, where: str) -> torch.Tensor:
    inside = pixels[: size[0], : size[1]]
    if tuple(inside.shape) != size:
        raise ValueError(
            f"{where}: masks have {pixels.shape[0]} x {pixels.shape[1]} pixels, fewer than that"
        )
    if int(inside.sum()) != int(pixels.sum()):
        raise ValueError(f"{where}: the mask has pixels beyond it")
    return inside


def area_of(segmentation: dict[str, Any]) -> int:
    """Pixels of a mask of compressed counts."""
    from trireme import _packs

    height, width = segmentation["size"]
    return _packs.area_of_runs(segmentation["counts"], (height, width))
