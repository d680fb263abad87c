"""Images, audio and volumes in files as samples: decoded, cropped and transformed by C++, on its threads, with the
bits of the recipes in C++ (docs/guides/bring_your_own_data.md).

photos = trireme.vision.open_images("train.tar", random_crop=trireme.vision.RandomCrop())
trireme.Session(model, loss, photos, batch_size=256, microbatch_size=32)

What is random is a function of seed, sample and epoch: not of ranks, threads or a resume.
"""

import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TypeAlias

from trireme.source_samples import SourceSamples

Path: TypeAlias = str | os.PathLike[str]
Triple: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class RandomCrop:
    """A crop of random area, aspect and place, as torchvision's RandomResizedCrop; then perhaps a flip.

    min_area, max_area        parts of the image.
    min_aspect, max_aspect    width by height.
    flip_probability          of left and right changing places.
    """

    min_area: float = 0.08
    max_area: float = 1.0
    min_aspect: float = 3 / 4
    max_aspect: float = 4 / 3
    flip_probability: float = 0.5

    def numbers(self) -> list[float]:
        """In the order above."""
        return [*astuple(self)]


class Images(SourceSamples):
    """What `open_images` opens; `classes` are the names of the classes by number."""

    classes: list[str]


def open_images(
    paths: Path | Sequence[Path],
    *,
    random_crop: RandomCrop | None = None,
    size: int = 224,
    shorter: int = 256,
    mean: Triple = (0.485, 0.456, 0.406),
    std: Triple = (0.229, 0.224, 0.225),
    as_bytes: bool = False,
    classes: Sequence[str] = (),
    image_field: str = "",
    label_field: str = "cls",
    label_key: str = "",
    has_i64_labels: bool = False,
    seed: int = 0,
    keep_bytes: int = 0,
) -> Images:
    """JPEG and PNG images with a class each: a folder with one for each class, tar shards, or what else open_records
    knows by its name.

    random_crop    training; None: the middle of the image, once its shorter side was resized to `shorter`.
    size           of the sides of a sample. Samples are `image` f32 [3, size, size], (level / 255 - mean) / std, or
                   with `as_bytes` u8, the levels; and `label` i64 [].
    classes        names by number; none: those of the files.
    image_field, label_field, label_key, has_i64_labels    where they stand in a record: the first of jpg, jpeg and
                   png; a number in digits or a name of `classes`, of a field that is a JSON object under a key, or
                   eight bytes.
    seed           of the crops and flips.
    keep_bytes     of decoded images that each process keeps for later epochs. Speed only.

    Raises Error: `invalid argument` for options and names, `corrupt data`, naming file and record, `input/output`.
    """
    from trireme import _packs  # with the libraries of all packs

    source, names = _packs.image_source(
        _paths(paths),
        list(classes),
        image_field,
        label_field,
        label_key,
        has_i64_labels,
        size,
        shorter,
        None if random_crop is None else random_crop.numbers(),
        mean,
        std,
        as_bytes,
        seed,
        keep_bytes,
    )
    images = Images(source)
    images.classes = names
    return images


def open_utterances(
    paths: Path | Sequence[Path],
    alphabet: str,
    *,
    spec_augment: bool = False,
    sample_rate: int = 16000,
    n_fft: int = 512,
    win_length: int = 320,
    hop_length: int = 160,
    n_mels: int = 80,
    is_normalized: bool = True,
    stack: int = 1,
    subsample: int = 1,
    max_seconds: float = 16.7,
    num_lengths: int = 1,
    seed: int = 0,
) -> SourceSamples:
    """Audio with its text: FLAC, WAV, MP3 and Ogg in records, named by manifests, or as LibriSpeech lies in folders.

    alphabet       each of its characters is its place from 1 on.
    spec_augment   training: masks of SpecAugment, with its usual numbers.
    sample_rate, n_fft, win_length, hop_length, n_mels    torchaudio's names; audio of other rates is resampled.
    is_normalized  each feature over the utterance.
    stack, subsample    frames that one is made of; every so many frames one is kept.
    max_seconds    longer utterances are left out.
    num_lengths    that batches are padded to; the model is recorded at each.

    Samples are `features` f32 [frames, stack * n_mels], `num_frames` i32, `tokens` i32 [tokens], `num_tokens` i32, at
    their own lengths. Raises Error as open_images.
    """
    from trireme import _packs  # with the libraries of all packs

    return SourceSamples(
        _packs.utterance_source(
            _paths(paths),
            alphabet,
            sample_rate,
            n_fft,
            win_length,
            hop_length,
            n_mels,
            is_normalized,
            spec_augment,
            stack,
            subsample,
            max_seconds,
            num_lengths,
            seed,
        )
    )


def open_volumes(
    images: Path,
    labels: Path = "",
    *,
    is_random: bool = False,
    patch: tuple[int, int, int] = (128, 128, 128),
    spacing: Triple | None = None,
    intensities: tuple[float, float, float, float] = (-79, 304, 101, 76.9),
    seed: int = 0,
    keep_bytes: int = 2 << 30,
) -> SourceSamples:
    """NIfTI volumes with labels, a patch of each case in an epoch, as MLPerf's 3D U-Net takes them.

    images, labels  two folders of files of the same names; or one with a folder for each case, KiTS's names in it.
    is_random       training: crops biased to foreground, mirrored, in other brightness and with noise, as chance has
                    it. Else the middle.
    spacing         z, y, x in millimetres that all cases are resampled to, (1.6, 1.2, 1.2) of KiTS; None: the files'.
    intensities     low, high, mean, deviation: (min(max(value, low), high) - mean) / deviation.
    keep_bytes      of unpacked cases that each process keeps. Speed only.

    Samples are `image` f32 [1, *patch] and `label` u8 [*patch]; axes z, y, x. Raises Error as open_images.
    """
    from trireme import _packs  # with the libraries of all packs

    return SourceSamples(
        _packs.volume_source(
            images, labels, patch, intensities, spacing, is_random, seed, keep_bytes
        )
    )


def _paths(paths: Path | Sequence[Path]) -> list[str]:
    many = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [os.fspath(path) for path in many]
