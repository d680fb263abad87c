"""Volumes: components judged by cc3d and scipy, NIfTI by nibabel, Dice by published figures and
NumPy, sliding windows by MONAI's and nnU-Net's formulas.
"""

from __future__ import annotations

import csv
import itertools
import tempfile
import unittest
from pathlib import Path
from typing import Any

import judging

judging.require("cc3d", "nibabel", "numpy", "safetensors", "scipy")

import cc3d  # noqa: E402
import nibabel  # noqa: E402
import numpy as np  # noqa: E402
from scipy import ndimage  # noqa: E402

CT = judging.DATA / "vol-ct-totalsegmentator"
HIPPOCAMPUS = judging.DATA / "vol-hippocampus"


def blobs(random: np.random.Generator, shape: tuple[int, ...], labels: int) -> np.ndarray:
    """Labels in regions of some voxels, half of all background, with single voxels among them."""
    smooth = ndimage.gaussian_filter(random.standard_normal(shape), 1.5)
    found = np.digitize(smooth, np.quantile(smooth, 0.5 + 0.5 * np.arange(labels) / labels))
    specks = random.random(shape) < 0.02
    return np.where(specks, random.integers(0, labels + 1, shape), found)


def by_first_voxel(numbers: np.ndarray) -> np.ndarray:
    """Components numbered in the order of their first voxels."""
    values, first = np.unique(numbers, return_index=True)
    first = first[values != 0]
    values = values[values != 0]
    table = np.zeros(int(numbers.max(initial=0)) + 1, np.int32)
    table[values[np.argsort(first)]] = np.arange(1, len(values) + 1)
    return table[numbers]


def read(file: Path, labels: bool = False) -> dict[str, Any]:
    return judging.call(
        "nifti", {"none": np.zeros(1, np.uint8)}, file=file, labels=1 if labels else 0
    )


class Components(unittest.TestCase):
    def check(self, labels: np.ndarray) -> None:
        for connectivity, order in ((6, 1), (18, 2), (26, 3)):
            found = judging.call("components", {"labels": labels}, connectivity=connectivity)
            expected = cc3d.connected_components(labels, connectivity=connectivity)
            expected = by_first_voxel(expected)
            np.testing.assert_array_equal(found["map"], expected)
            statistics = cc3d.statistics(expected.astype(np.uint32))
            rows = found["components"]
            np.testing.assert_array_equal(rows[:, 1], statistics["voxel_counts"][1:])
            boxes = statistics["bounding_boxes"][1:]
            np.testing.assert_array_equal(rows[:, 2:5], [[s.start for s in b] for b in boxes])
            np.testing.assert_array_equal(rows[:, 5:8], [[s.stop for s in b] for b in boxes])
            structure = ndimage.generate_binary_structure(3, order)
            for label in np.unique(labels[labels != 0]):
                numbers, count = ndimage.label(labels == label, structure)
                np.testing.assert_array_equal(
                    by_first_voxel(np.where(labels == label, found["map"], 0)), numbers
                )
                self.assertEqual(count, np.count_nonzero(rows[:, 0] == label))

    def test_random(self) -> None:
        random = np.random.default_rng(1)
        for shape in ((20, 31, 65), (7, 64, 130), (33, 1, 40)):
            self.check(blobs(random, shape, 2).astype(np.uint8))
            self.check((1000 * blobs(random, shape, 5)).astype(np.int32))
        self.check(random.integers(0, 2, (10, 20, 30)).astype(np.uint8))

    @unittest.skipUnless(CT.exists(), "the segmented CT is not here")
    def test_organs(self) -> None:
        self.check(np.asarray(nibabel.load(CT / "seg_reference.nii.gz").dataobj).T.copy())


class Crops(unittest.TestCase):
    def test_places(self) -> None:
        """Crops of a label contain, or lie within, one of scipy's two largest boxes of it."""
        random = np.random.default_rng(2)
        labels = blobs(random, (40, 50, 60), 2).astype(np.uint8)
        labels[ndimage.gaussian_filter(random.standard_normal(labels.shape), 4) < 0.02] = 0
        patch = np.array([16, 20, 24])
        found = judging.call("crops", {"labels": labels, "patch": patch}, seed=5, draws=3000)
        self.assertAlmostEqual(float(np.mean(found["labels"] == 0)), 0.6, delta=0.04)
        for label in (1, 2):
            numbers, _ = ndimage.label(labels == label)
            boxes = [
                [(s.start, s.stop) for s in box]
                for box in ndimage.find_objects(numbers)
                if box is not None
            ]
            boxes.sort(key=lambda box: -int(np.prod([b - a for a, b in box])))
            begins = found["begins"][found["labels"] == label]
            self.assertGreater(len(begins), 500)
            at_box = []
            for box in boxes[:2]:
                low, high = np.array(box).T
                at_box.append(
                    ((begins - low) * (high - begins - patch) >= 0).all(axis=1).astype(bool)
                )
            self.assertTrue(np.logical_or(*at_box).all())
            self.assertGreater(min(hits.mean() for hits in at_box), 0.4)


class Dice(unittest.TestCase):
    def test_random(self) -> None:
        random = np.random.default_rng(3)
        for dtype in (np.uint8, np.int32):
            predicted, expected = (
                blobs(random, (12, 30, 41), 4).astype(dtype) for _ in ("predicted", "expected")
            )
            found = judging.call("dice", {"predicted": predicted, "expected": expected}, classes=6)
            for c, (both, p, t, dice, iou) in enumerate(found["counts"]):
                a, b = predicted == c, expected == c
                self.assertEqual((both, p, t), ((a & b).sum(), a.sum(), b.sum()))
                if c == 5:
                    self.assertTrue(np.isnan(dice) and np.isnan(iou))
                    continue
                self.assertEqual(dice, 2 * (a & b).sum() / (a.sum() + b.sum()))
                self.assertEqual(iou, (a & b).sum() / (a | b).sum())

    def test_soft(self) -> None:
        random = np.random.default_rng(4)
        p = random.random((3, 20, 41, 53)).astype(np.float32)
        p /= p.sum(0)
        t = random.integers(0, 3, p.shape[1:]).astype(np.uint8)
        found = judging.call("soft_dice", {"probabilities": p, "expected": t})["dice"]
        one_hot, wide = np.stack([t == c for c in range(3)]), p.astype(np.float64)
        axes = (1, 2, 3)
        both, size = (wide * one_hot).sum(axes), one_hot.sum(axes)
        for column, sums in enumerate((wide.sum(axes), (wide**2).sum(axes))):
            expected = (2 * both + 1e-6) / (sums + size + 1e-6)
            np.testing.assert_allclose(found[:, column], expected, rtol=1e-12)

    @unittest.skipUnless(CT.exists(), "the segmented CT is not here")
    def test_organs(self) -> None:
        predicted = read(CT / "seg_fast.nii.gz", labels=True)["labels"]
        expected = read(CT / "seg_reference.nii.gz", labels=True)["labels"]
        found = judging.call("dice", {"predicted": predicted, "expected": expected}, classes=118)
        with (CT / "expected_dice.tsv").open() as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        keys = list(rows[0])
        dices = []
        for row in rows:
            counts = found["counts"][int(row[keys[0]])]
            self.assertAlmostEqual(counts[3], float(row["dice"]), delta=1e-6)
            self.assertAlmostEqual(counts[4], float(row["iou"]), delta=1e-6)
            dices.append(counts[3])
        self.assertAlmostEqual(float(np.mean(dices)), 0.901996, delta=1e-6)


class SlidingWindow(unittest.TestCase):
    def test_positions(self) -> None:
        """As nnU-Net computes steps of a sliding window."""
        for side, patch, overlap in itertools.product((40, 57, 100, 131), (16, 39), (0.25, 0.5)):
            target = patch * (1 - overlap)
            count = int(np.ceil((side - patch) / target)) + 1
            step = (side - patch) / (count - 1)
            expected = [int(np.round(step * i)) for i in range(count)]
            found = judging.call(
                "window_positions",
                {"volume": np.array([4, 4, side]), "patch": np.array([4, 4, patch])},
                overlap=overlap,
            )
            self.assertEqual(found["positions"][:, 2].tolist(), expected)

    def test_means(self) -> None:
        random = np.random.default_rng(5)
        volume, patch, classes = (20, 33, 41), (9, 16, 18), 3
        positions = judging.call(
            "window_positions", {"volume": np.array(volume), "patch": np.array(patch)}, overlap=0.5
        )["positions"]
        logits = random.standard_normal((len(positions), classes, *patch)).astype(np.float32)
        tensors = {"logits": logits, "positions": positions, "volume": np.array(volume)}
        found = judging.call("sliding_window", tensors)
        # MONAI's importance map.
        axes = [
            np.exp(-((np.arange(n) - (n - 1) / 2) ** 2) / (2 * (0.125 * n) ** 2)) for n in patch
        ]
        weight = np.maximum(axes[0][:, None, None] * axes[1][:, None] * axes[2], 1e-3)
        total, norm = np.zeros((classes, *volume)), np.zeros(volume)
        for place, window in zip(positions, logits, strict=True):
            at = tuple(slice(b, b + n) for b, n in zip(place, patch, strict=True))
            total[(slice(None), *at)] += window * weight
            norm[at] += weight
        means = total / norm
        np.testing.assert_allclose(found["means"], means, atol=3e-6)
        top = np.sort(means, axis=0)
        is_clear = top[-1] - top[-2] > 1e-5
        np.testing.assert_array_equal(found["labels"][is_clear], means.argmax(0)[is_clear])


class Nifti(unittest.TestCase):
    def check(self, file: Path, labels: bool = False) -> None:
        image: Any = nibabel.load(file)
        found = read(file, labels)
        wide = np.asarray(image.get_fdata(dtype=np.float64))
        wide = wide.reshape(*wide.shape[:3], -1).T
        np.testing.assert_array_equal(found["values"], wide.astype(np.float32))
        if labels:
            np.testing.assert_array_equal(found["labels"], wide)
        np.testing.assert_allclose(found["spacing"][::-1], image.header.get_zooms()[:3], rtol=1e-7)
        np.testing.assert_allclose(found["affine"], image.affine[:3], rtol=1e-6, atol=1e-5)
        axes = "".join(nibabel.aff2axcodes(image.affine))
        self.assertEqual(bytes(found["orientation"]).decode(), axes)

    def test_forms(self) -> None:
        random = np.random.default_rng(6)
        types = ["int64", "uint64", "float32", "float64"]
        types += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)]
        kinds = (
            (nibabel.Nifti1Image, nibabel.Nifti1Header),
            (nibabel.Nifti2Image, nibabel.Nifti2Header),
        )
        with tempfile.TemporaryDirectory() as folder:
            for i, (dtype, order, (image_type, header_type)) in enumerate(
                itertools.product(types, "<>", kinds)
            ):
                # Oblique, but not so far that libraries disagree on the nearest direction.
                near = np.eye(3)[random.permutation(3)] * random.choice([-1, 1], 3)
                turn = np.linalg.qr(near + 0.15 * random.standard_normal((3, 3)))[0]
                affine = np.eye(4)
                affine[:3] = np.c_[turn * random.uniform(0.5, 3, 3), random.uniform(-99, 99, 3)]
                header = header_type(endianness=order)
                header.set_data_dtype(np.dtype(dtype).newbyteorder(order))
                values = random.integers(0, 100, (7, 6, 5, 2)[: 3 + i % 2])
                image = image_type(values.astype(np.float64), affine, header)
                image.header.set_slope_inter(0.25 if i % 3 == 0 else 1, 5 if i % 3 == 0 else 0)
                image.set_qform(affine, 1)
                image.set_sform(affine if i % 4 else None, i % 4 > 0)
                file = Path(folder) / f"{i}.nii{'.gz' if i % 2 else ''}"
                nibabel.save(image, file)
                self.check(file)

    def test_negative_spacing(self) -> None:
        """nibabel's own file with pixdim[1] changed, which nibabel would not write."""
        image = nibabel.Nifti1Image(np.zeros((4, 3, 2), np.uint8), np.diag([2.0, 3, 4, 1]))
        image.set_qform(image.affine, 1)
        image.set_sform(None, 0)
        content = bytearray(image.to_bytes())
        content[80:84] = np.float32(-2).tobytes()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "negative.nii"
            file.write_bytes(content)
            self.check(file)

    @unittest.skipUnless(CT.exists(), "the CT is not here")
    def test_ct(self) -> None:
        for name in ("ct", "ct_full"):
            self.check(CT / f"{name}.nii.gz", labels=True)

    @unittest.skipUnless(HIPPOCAMPUS.exists(), "the hippocampi are not here")
    def test_hippocampi(self) -> None:
        for folder in ("images", "labels"):
            for file in sorted((HIPPOCAMPUS / "val" / folder).glob("*.nii.gz"))[:10]:
                self.check(file, labels=folder == "labels")

    def test_refusal(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "colours.nii"
            colours = np.zeros((2, 2, 2), [("R", "u1"), ("G", "u1"), ("B", "u1")])
            nibabel.save(nibabel.Nifti1Image(colours, np.eye(4)), file)
            with self.assertRaisesRegex(judging.RefusedError, "datatype is 128"):
                read(file)


if __name__ == "__main__":
    judging.main()
