"""Images, audio and volumes as samples that C++ reads: trireme.vision.open_images and its like."""

import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import trireme
from trireme import _core, speech, vision, volume
from trireme.data import to_source
from trireme.source_samples import SourceSamples

SIZES: dict[str, Any] = {"batch_size": 4, "microbatch_size": 2, "serial": True}


def png(levels: np.ndarray) -> bytes:
    height, width, _ = levels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in levels)

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + body


def write_images(folder: Path) -> np.ndarray:
    """Eight of 12 x 12 pixels, of two classes in turn; as bytes, in the order of the samples."""
    levels = np.random.default_rng(3).integers(0, 256, (8, 12, 12, 3), np.uint8)
    for i, image in enumerate(levels):
        file = folder / ("cat", "dog")[i % 2] / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(image))
    return levels[[0, 2, 4, 6, 1, 3, 5, 7]]


def test_an_evaluations_images_are_those_of_the_files(tmp_path: Path) -> None:
    levels = write_images(tmp_path)
    whole: dict[str, Any] = {"size": 12, "shorter": 12}
    photos = vision.open_images(tmp_path, **whole)
    assert photos.classes == ["cat", "dog"]
    assert [int(one["label"]) for one in photos] == [0] * 4 + [1] * 4
    expected = torch.from_numpy(levels).permute(0, 3, 1, 2)
    raw = vision.open_images(tmp_path, has_bytes=True, **whole)
    assert torch.equal(torch.stack([one["image"] for one in raw]), expected)
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)
    for one, own in zip(photos, expected, strict=True):
        torch.testing.assert_close(one["image"], (own / 255 - mean) / std)


def test_crops_are_functions_of_seed_and_visit(tmp_path: Path) -> None:
    write_images(tmp_path)

    def crops(seed: int, **options: Any) -> Any:
        return vision.open_images(
            [tmp_path], size=8, seed=seed, random=vision.RandomCrop(**options)
        )

    photos = crops(1)
    assert torch.equal(photos.sample(3, 5)["image"], crops(1).sample(3, 5)["image"])
    assert not torch.equal(photos.sample(3, 5)["image"], photos.sample(3, 6)["image"])
    assert not torch.equal(photos.sample(3, 5)["image"], crops(2).sample(3, 5)["image"])
    whole: dict[str, Any] = {"min_area": 1.0, "min_aspect": 1.0, "max_aspect": 1.0}
    flipped = crops(1, flip_probability=1, **whole)[2]["image"]
    assert torch.equal(flipped.flip(2), crops(1, flip_probability=0, **whole)[2]["image"])
    with pytest.raises(trireme.Error, match="area"):
        crops(1, min_area=2)
    with pytest.raises(ValueError, match="'text' or 'i64'"):
        vision.open_images(tmp_path, label_form="i32")  # type: ignore[arg-type]
    with pytest.raises(trireme.Error, match="no form of records 'zip'"):
        vision.open_images(tmp_path, form="zip")


class Read(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """The same samples, by Python."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.data[index]


def test_a_session_trains_on_images(tmp_path: Path) -> None:
    write_images(tmp_path)
    photos = vision.open_images(tmp_path, size=8, shorter=8)

    def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch["image"].flatten(1)), batch["label"])

    def losses(data: Any) -> list[float]:
        torch.manual_seed(1)
        session = trireme.Session(nn.Linear(192, 2), loss, data, steps=4, **SIZES)
        return [report.loss for report in session]

    assert losses(photos) == losses(Read(photos))


def test_crops_beneath_what_augments_are_those_of_the_epoch(tmp_path: Path) -> None:
    write_images(tmp_path)
    photos = vision.open_images(tmp_path, size=8, random=vision.RandomCrop())
    same = trireme.Repeated(photos, 2, augment=lambda sample, generator: sample)
    source, _ = to_source(same)
    for visit in range(4):
        found = dict(_core.sample_of(source, 3, visit))["image"]
        assert torch.equal(found, photos.sample(3, visit // 2)["image"])


def test_audio_is_samples_at_their_own_lengths(tmp_path: Path) -> None:
    lines = []
    for i, text in enumerate(["GO", "STAY HERE"]):
        samples = np.random.default_rng(i).integers(-9000, 9000, 4000 * (i + 1)).astype("<i2")
        with wave.open(str(tmp_path / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
        lines.append(f'{{"audio_filepath": "{i}.wav", "text": "{text}"}}\n')
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text("".join(lines))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ "
    spoken = speech.open_utterances(manifest, alphabet, n_mels=20, num_lengths=2)
    for i, text in enumerate(["GO", "STAY HERE"]):
        sample = spoken[i]
        assert sample["tokens"].tolist() == [1 + alphabet.index(letter) for letter in text]
        frames = int(sample["num_frames"])
        assert sample["features"].shape == (frames, 20)
        assert frames == 1 + 4000 * (i + 1) // 160
        torch.testing.assert_close(sample["features"].mean(0), torch.zeros(20), atol=1e-4, rtol=0)
    with pytest.raises(trireme.Error, match="'S'"):
        speech.open_utterances(manifest, "GO")
    masked = speech.open_utterances(
        manifest,
        alphabet,
        n_mels=20,
        text_field="text",
        is_checked=True,
        masks=speech.SpecAugment(n_time_masks=0, n_freq_masks=3, freq_mask_param=9),
    )
    zeros = [int((masked.sample(1, visit)["features"] == 0).all(0).sum()) for visit in range(8)]
    assert max(zeros) > 0
    assert len(set(zeros)) > 1
    with pytest.raises(trireme.Error, match="words"):
        speech.open_utterances(manifest, alphabet, text_field="words")
    row = SourceSamples(to_source(trireme.Packed(spoken, max_segments=2))[0])[0]
    assert row["tokens_lengths"].tolist() == [2, 0]
    with pytest.raises(TypeError, match="give it as it is"):
        trireme.Padded(spoken, {"frames": [99]}, {"features": {0: "frames"}})


def nifti(values: np.ndarray, spacing: tuple[float, float, float]) -> bytes:
    """Of i16 voxels z, y, x."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *reversed(values.shape), 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 4, 16)
    struct.pack_into("<8f", header, 76, 1, *reversed(spacing), 1, 1, 1, 1)
    struct.pack_into("<f", header, 108, 352)
    header[344:348] = b"n+1\0"
    return bytes(header) + values.astype("<i2").tobytes()


def test_volumes_are_resampled_as_torch_does_it(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    image, label = draw.integers(-100, 400, (9, 10, 11)), draw.integers(0, 3, (9, 10, 11))
    for name, values in (("images", image), ("labels", label)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.nii").write_bytes(nifti(values, (3, 2, 1)))
    folders = tmp_path / "images", tmp_path / "labels"
    shape = (18, 13, 7)  # floor(9 * 3 / 1.5), floor(10 * 2 / 1.5), floor(11 / 1.5)
    source = volume.open_volumes(*folders, patch=shape, spacing=(1.5, 1.5, 1.5))
    sample = source[0]
    wide = torch.from_numpy(image).float()[None, None]
    expected = nn.functional.interpolate(wide, shape, mode="trilinear", align_corners=True)
    torch.testing.assert_close(
        sample["image"], (expected[0].clip(-79, 304) - 101) / 76.9, atol=1e-5, rtol=1e-5
    )
    nearest = nn.functional.interpolate(torch.from_numpy(label).float()[None, None], shape)
    assert torch.equal(sample["label"], nearest[0, 0].to(torch.uint8))
    random = volume.open_volumes(*folders, patch=(4, 4, 4), random=volume.RandomPatch(), seed=2)
    assert torch.equal(random.sample(0, 3)["image"], random.sample(0, 3)["image"])
    assert not torch.equal(random.sample(0, 3)["image"], random.sample(0, 4)["image"])
    still: dict[str, Any] = {"foreground_share": 0, "flip_probability": 0, "noise_probability": 0}
    bright = [
        volume.open_volumes(
            *folders,
            patch=(4, 4, 4),
            random=volume.RandomPatch(
                **still, brightness_probability=1, brightness_low=factor, brightness_high=factor
            ),
        )[0]["image"]
        for factor in (1.0, 2.0)
    ]
    torch.testing.assert_close(bright[1], 2 * bright[0])
