"""Images as samples. Detection: suppression of overlapping boxes, regions of feature maps, COCO's metrics. Arguments as
torchvision's.

    keep = trireme.vision.batched_nms(boxes, scores, labels, iou_threshold=0.5)
    pooled = trireme.vision.roi_align(features, boxes, output_size=7, spatial_scale=1 / 16, aligned=True)

Operators are of f32 on the CPU and run on torch's threads, which change no bit; one of another type or device is a
RuntimeError that says so. They pass torch.compile and torch.export; what has a gradient has one once.
Formulas, sources and cost: packs/vision/kernels.
"""

from collections.abc import Sequence

import torch

from trireme import libraries
from trireme.coco_evaluation import COCOeval, Params
from trireme.pack_sources import Images, RandomCrop, open_images

libraries.load("trireme_vision")
_ops = torch.ops.trireme

__all__ = [
    "COCOeval",
    "Images",
    "Params",
    "RandomCrop",
    "RoIAlign",
    "batched_nms",
    "fixed_nms",
    "fixed_nonzero",
    "hard_negatives",
    "nms",
    "open_images",
    "roi_align",
    "ssd_loss",
    "ssd_targets",
]


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """The boxes that are kept: in order of falling scores, unless they overlap one that is kept by more than the
    threshold. As `torchvision.ops.nms`, box for box; equal scores in order of their index.

    boxes    f32 [n, 4] x1, y1, x2, y2 in any unit.
    scores   f32 [n].
    Returns  i64 [kept].
    Errors   RuntimeError naming the box where a number is NaN, or where a box ends before it starts.
    Cost     kept x n / 2 overlaps at most.
    """
    return _ops.nms(boxes, scores, iou_threshold)


def batched_nms(
    boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float
) -> torch.Tensor:
    """`nms` among the boxes of one class each; over all classes in order of falling scores.

    idxs     integers [n], the classes. They do not move boxes (torchvision's may, and then round).
    """
    return _ops.batched_nms(boxes, scores, idxs, iou_threshold)


def fixed_nms(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    classes: torch.Tensor,
    threshold: float = 0.5,
    capacity: int = 100,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`batched_nms` image by image into a fixed number of places, so that no shape depends on values: such a model
    can be recorded.

    boxes    f32 [B, n, 4]; scores f32 [B, n]; classes integers [B, n].
    Returns  i64 [B, capacity], 0 behind the kept ones, and i64 [B], how many are kept.
    """
    return _ops.fixed_nms(boxes, scores, classes, threshold, capacity)


def hard_negatives(losses: torch.Tensor, is_matched: torch.Tensor, ratio: float) -> torch.Tensor:
    """SSD's choice of anchors: the matched ones, and `ratio` times as many others, those of largest loss.

    losses   f32 [B, n]; is_matched bool [B, n].
    Returns  bool [B, n].
    """
    return _ops.hard_negatives(losses, is_matched, ratio)


def ssd_targets(
    boxes: torch.Tensor, labels: torch.Tensor, anchors: torch.Tensor, threshold: float = 0.5
) -> tuple[torch.Tensor, torch.Tensor]:
    """What SSD's anchors should say: each takes the box that it overlaps with most, where that exceeds the threshold;
    then each box takes the anchor that overlaps with it most.

    boxes    f32 [B, M, 4] x1, y1, x2, y2; labels i64 [B, M] from 1 on, the first 0 ends an image's boxes.
    anchors  f32 [A, 4].
    Returns  i64 [B, A] labels, 0 for background, and f32 [B, A, 4] codes of the boxes, with variances 0.1 and 0.2.
    """
    return _ops.ssd_targets(boxes, labels, anchors, threshold)


def ssd_loss(
    codes: torch.Tensor,
    logits: torch.Tensor,
    boxes: torch.Tensor,
    labels: torch.Tensor,
    anchors: torch.Tensor,
    threshold: float = 0.5,
    negatives_ratio: float = 3,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """SSD's matching, choice of hard negatives and both losses, in one call. torchvision's `SSD.compute_loss` divides
    the sums by all matched anchors of the batch:

        box_losses, class_losses, num_matched = ssd_loss(...)
        loss = (box_losses.sum() + class_losses.sum()) / num_matched.sum().clamp_min(1)

    codes    f32 [B, A, 4], of the anchors' boxes, with variances 0.1 and 0.2; logits f32 [B, A, K], of background as
             class 0. These two get a gradient, once.
    boxes, labels, anchors, threshold    as of `ssd_targets`; labels below K.
    negatives_ratio                      as of `hard_negatives`.
    Returns  of each image: f32 [B] sums of smooth L1 over matched anchors, f32 [B] sums of cross-entropy over matched
             anchors and hard negatives, i64 [B] matched anchors.
    Errors   RuntimeError naming the image, for a box without area or a loss that is NaN.
    Cost     the gradient of rows that are not chosen is a fill.
    """
    return _ops.ssd_loss(codes, logits, boxes, labels, anchors, threshold, negatives_ratio)


def fixed_nonzero(values: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices of true elements, row by row; places left over repeat them from the first on.

    values   bool [B, n].
    Returns  i64 [B, capacity], and i64 [B], how many are true.
    """
    return _ops.fixed_nonzero(values, capacity)


def roi_align(
    input: torch.Tensor,  # noqa: A002  torchvision's name
    boxes: torch.Tensor | Sequence[torch.Tensor],
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> torch.Tensor:
    """Regions of feature maps, pooled by bilinear samples. As `torchvision.ops.roi_align`, but for the order of
    additions.

    input           f32 [B, C, height, width]; channels last saves a copy.
    boxes           f32 [R, 5] index in the batch, x1, y1, x2, y2, or a list of f32 [R, 4] an image; without gradient.
    spatial_scale   from the boxes' units to pixels of `input`.
    sampling_ratio  samples along each side of a bin; 0 or less: one for each pixel it covers.
    Returns         f32 [R, C, height, width] of `output_size`, channels last.
    Errors          RuntimeError naming the region that is in no feature map or not finite.
    Source          He et al., "Mask R-CNN", ICCV 2017, section 3.
    """
    if not isinstance(boxes, torch.Tensor):
        boxes = _with_image(boxes)
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    return _ops.roi_align(
        input, boxes, height, width, spatial_scale, max(sampling_ratio, 0), aligned
    )


def _with_image(boxes: Sequence[torch.Tensor]) -> torch.Tensor:
    """[R, 5] of a list of [R, 4]."""
    for image, own in enumerate(boxes):
        if own.dim() != 2 or own.shape[1] != 4:
            raise ValueError(
                f"boxes[{image}] has shape {list(own.shape)}; give [boxes, 4], x1, y1, x2, y2, of each image"
            )
    indices = [own.new_full((own.shape[0], 1), image) for image, own in enumerate(boxes)]
    return torch.cat([torch.cat(indices), torch.cat(list(boxes))], dim=1)


class RoIAlign(torch.nn.Module):
    """`roi_align` as a module. As `torchvision.ops.RoIAlign`."""

    def __init__(
        self,
        output_size: int | tuple[int, int],
        spatial_scale: float,
        sampling_ratio: int,
        aligned: bool = False,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def forward(
        self,
        input: torch.Tensor,  # noqa: A002
        rois: torch.Tensor | Sequence[torch.Tensor],
    ) -> torch.Tensor:
        return roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned}"
        )


# Shapes, for tracers.


@torch.library.register_fake("trireme::_roi_align")
def _(
    features: torch.Tensor,
    regions: torch.Tensor,
    pooled_height: int,
    pooled_width: int,
    scale: float,
    num_samples: int,
    is_aligned: bool,
) -> torch.Tensor:
    shape = (regions.shape[0], features.shape[1], pooled_height, pooled_width)
    return features.new_empty(shape).to(memory_format=torch.channels_last)


@torch.library.register_fake("trireme::_roi_align_backward")
def _(
    gradient: torch.Tensor,
    regions: torch.Tensor,
    shape: Sequence[int],
    scale: float,
    num_samples: int,
    is_aligned: bool,
) -> torch.Tensor:
    return gradient.new_empty(shape).to(memory_format=torch.channels_last)


@torch.library.register_fake("trireme::nms")
def _(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    kept = torch.library.get_ctx().new_dynamic_size()
    return boxes.new_empty((kept,), dtype=torch.int64)


@torch.library.register_fake("trireme::batched_nms")
def _(
    boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, threshold: float
) -> torch.Tensor:
    kept = torch.library.get_ctx().new_dynamic_size()
    return boxes.new_empty((kept,), dtype=torch.int64)


@torch.library.register_fake("trireme::fixed_nms")
def _(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    classes: torch.Tensor,
    threshold: float = 0.5,
    capacity: int = 100,
) -> tuple[torch.Tensor, torch.Tensor]:
    return _places(scores, capacity)


@torch.library.register_fake("trireme::fixed_nonzero")
def _(values: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    return _places(values, capacity)


@torch.library.register_fake("trireme::hard_negatives")
def _(losses: torch.Tensor, is_matched: torch.Tensor, ratio: float) -> torch.Tensor:
    return torch.empty_like(is_matched, memory_format=torch.contiguous_format)


@torch.library.register_fake("trireme::ssd_targets")
def _(
    boxes: torch.Tensor, labels: torch.Tensor, anchors: torch.Tensor, threshold: float = 0.5
) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (labels.shape[0], anchors.shape[0])
    return labels.new_empty(shape), boxes.new_empty((*shape, 4))


@torch.library.register_fake("trireme::_ssd_loss")
def _(
    codes: torch.Tensor,
    logits: torch.Tensor,
    boxes: torch.Tensor,
    labels: torch.Tensor,
    anchors: torch.Tensor,
    threshold: float,
    negatives_ratio: float,
) -> tuple[torch.Tensor, ...]:
    images, count = logits.shape[:2]
    sums = logits.new_empty((images,))
    return (
        sums,
        torch.empty_like(sums),
        labels.new_empty((images,)),
        logits.new_empty((images, count, 4)),
        labels.new_empty((images, count)),
        logits.new_empty((images, count), dtype=torch.bool),
        logits.new_empty((images, count)),
    )


@torch.library.register_fake("trireme::_ssd_loss_backward")
def _(
    box_gradients: torch.Tensor,
    class_gradients: torch.Tensor,
    logits: torch.Tensor,
    slopes: torch.Tensor,
    classes: torch.Tensor,
    is_chosen: torch.Tensor,
    log_sums: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(slopes), logits.new_empty(logits.shape)


def _places(like: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    places = like.new_empty((like.shape[0], capacity), dtype=torch.int64)
    return places, like.new_empty((like.shape[0],), dtype=torch.int64)
