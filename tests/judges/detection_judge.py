"""Detection kernels, judged by torchvision."""

from __future__ import annotations

import unittest

import judging

judging.require("numpy", "torch", "torchvision")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from torchvision.models.detection import _utils as detection  # noqa: E402


def random_boxes(random: np.random.Generator, n: int, size: float = 40) -> np.ndarray:
    corner = random.uniform(0, 100, (n, 2))
    return np.hstack([corner, corner + random.uniform(0.5, size, (n, 2))]).astype(np.float32)


class Detection(unittest.TestCase):
    def test_non_maximum_suppression(self) -> None:
        random = np.random.default_rng(1)
        for n in (0, 1, 40, 1000):
            for threshold in (0.3, 0.5, 0.75):
                boxes = random_boxes(random, n)
                scores = random.permutation(n).astype(np.float32) / max(n, 1)
                classes = random.integers(0, 3, n)
                ours = judging.call(
                    "batched_nms",
                    {"boxes": boxes, "scores": scores, "classes": classes},
                    threshold=threshold,
                )
                judge = torchvision.ops.boxes._batched_nms_vanilla(
                    *map(torch.from_numpy, (boxes, scores, classes)), threshold
                )
                np.testing.assert_array_equal(ours["kept"], judge.numpy())

    def test_roi_align(self) -> None:
        random = np.random.default_rng(2)
        for aligned in (False, True):
            for samples in (0, 2):
                features = random.normal(size=(2, 21, 30, 19)).astype(np.float32)
                corner = random.uniform(-8, 50, (33, 2))
                regions = np.hstack(
                    [
                        random.integers(0, 2, (33, 1)),
                        corner,
                        corner + random.uniform(-2, 40, (33, 2)),
                    ]
                ).astype(np.float32)
                gradient = random.normal(size=(33, 7, 7, 19)).astype(np.float32)
                ours = judging.call(
                    "roi_align",
                    {"features": features, "regions": regions, "gradient_out": gradient},
                    scale=0.5,
                    num_samples=samples,
                    is_aligned=int(aligned),
                )
                first = torch.from_numpy(features).permute(0, 3, 1, 2).contiguous()
                first.requires_grad_()
                out = torchvision.ops.roi_align(
                    first, torch.from_numpy(regions), 7, 0.5, samples or -1, aligned
                )
                out.backward(torch.from_numpy(gradient).permute(0, 3, 1, 2).contiguous())
                its = out.detach().permute(0, 2, 3, 1).numpy()
                np.testing.assert_allclose(ours["out"], its, rtol=1e-4, atol=1e-5)
                its = first.grad.permute(0, 2, 3, 1).numpy()
                np.testing.assert_allclose(ours["gradient"], its, rtol=1e-4, atol=1e-4)

    def test_overlaps_and_matches(self) -> None:
        random = np.random.default_rng(3)
        for keeps_best in (False, True):
            truth, anchors = random_boxes(random, 9), random_boxes(random, 500, 60)
            ours = judging.call(
                "match_anchors",
                {"a": truth, "b": anchors},
                high=0.5,
                low=0.3,
                keeps_best=int(keeps_best),
            )
            overlaps = torchvision.ops.box_iou(torch.from_numpy(truth), torch.from_numpy(anchors))
            np.testing.assert_array_equal(ours["overlaps"], overlaps.numpy())
            matcher = detection.Matcher(0.5, 0.3, allow_low_quality_matches=keeps_best)
            np.testing.assert_array_equal(ours["matches"], matcher(overlaps).numpy())

    def test_box_codes(self) -> None:
        random = np.random.default_rng(4)
        boxes, anchors = random_boxes(random, 200), random_boxes(random, 200)
        codes = random.normal(size=(200, 4), scale=6).astype(np.float32)
        ours = judging.call("code_boxes", {"boxes": boxes, "anchors": anchors, "codes": codes})
        coder = detection.BoxCoder((10.0, 10.0, 5.0, 5.0))
        encoded = coder.encode_single(torch.from_numpy(boxes), torch.from_numpy(anchors))
        np.testing.assert_allclose(ours["codes"], encoded.numpy(), rtol=1e-5, atol=1e-5)
        decoded = coder.decode_single(torch.from_numpy(codes), torch.from_numpy(anchors))
        np.testing.assert_allclose(ours["decoded"], decoded.numpy(), rtol=1e-5, atol=1e-3)

    def test_a_box_that_is_none_is_named(self) -> None:
        with self.assertRaisesRegex(judging.RefusedError, "box 1"):
            judging.call(
                "batched_nms",
                {
                    "boxes": np.array([[0, 0, 1, 1], [2, 0, 1, 1]], np.float32),
                    "scores": np.ones(2, np.float32),
                    "classes": np.zeros(2, np.int64),
                },
                threshold=0.5,
            )


if __name__ == "__main__":
    judging.main()
