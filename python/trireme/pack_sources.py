"""Images, audio and volumes in files as samples: decoded, cropped and transformed by C++, on its threads, with the
bits of the recipes in C++ (docs/guides/bring_your_own_data.md).

photos = trireme.vision.open_images("train.tar", random=trireme.vision.RandomCrop())
trireme.Session(model, loss, photos, batch_size=256, microbatch_size=32)

What is random is a function of seed, sample and epoch: not of ranks, threads or a resume.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from trireme import _core
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


@dataclass(frozen=True)
class SpecAugment:
    """Masks of time and of frequency, which are 0, the mean of normalised features (Park et al. 2019).

    n_time_masks, time_mask_param    spans, and their most frames; 0: as `p` says alone.
    n_freq_masks, freq_mask_param    bands, and their most features.
    p                                part of the utterance's frames that a span takes at most.
    """

    n_time_masks: int = 10
    time_mask_param: int = 0
    n_freq_masks: int = 2
    freq_mask_param: int = 20
    p: float = 0.03


@dataclass(frozen=True)
class RandomPatch:
    """Patches as 3D U-Net takes them, mirrored, then brighter or darker and with noise.

    foreground_share, num_objects     part of the patches around one of the largest so many objects.
    flip_probability                  of each axis.
    brightness_probability            of one factor for all values, from brightness_low to brightness_high.
    noise_probability                 of a normal number for each value, of a deviation up to noise_deviation.
    """

    foreground_share: float = 0.4
    num_objects: int = 2
    flip_probability: float = 1 / 3
    brightness_probability: float = 0.1
    brightness_low: float = 0.7
    brightness_high: float = 1.3
    noise_probability: float = 0.1
    noise_deviation: float = 0.1


class Images(SourceSamples):
    """What `open_images` opens; `classes` are the names of the classes by number."""

    def __init__(self, source: _core.Source, classes: list[str]) -> None:
        super().__init__(source)
        self.classes = classes


def open_images(
    paths: Path | Sequence[Path],
    *,
    random: RandomCrop | None = None,
    size: int = 224,
    shorter: int = 256,
    mean: Triple = (0.485, 0.456, 0.406),
    deviation: Triple = (0.229, 0.224, 0.225),
    has_bytes: bool = False,
    form: str = "by_name",
    classes: Sequence[str] = (),
    image_field: str = "",
    label_field: str = "cls",
    label_key: str = "",
    label_form: Literal["text", "i64"] = "text",
    seed: int = 0,
    keep_bytes: int = 0,
) -> Images:
    """JPEG and PNG images with a class each: a folder with one for each class, tar shards, or what else open_records
    knows.

    random         training; None: the middle of the image, once its shorter side was resized to `shorter`.
    size           of the sides of a sample. Samples are `image` f32 [3, size, size], (level / 255 - mean) / deviation,
                   or with `has_bytes` u8, the levels; and `label` i64 [].
    form           of files with other names, as of open_records.
    classes        names by number; none: those of the files.
    image_field, label_field, label_key, label_form    where they stand in a record: the first of jpg, jpeg and png; a
                   number in digits or a name of `classes`, of a field that is a JSON object under a key, or with
                   `i64` eight bytes.
    seed           of the crops and flips.
    keep_bytes     of decoded images that each process keeps for later epochs. Speed only.

    Raises Error: `invalid argument` for options and names, `corrupt data`, naming file and record, `input/output`;
    ValueError for another `label_form`.
    """
    from trireme import _packs  # with the libraries of all packs

    if label_form not in ("text", "i64"):
        raise ValueError(f"label_form is {label_form!r}, expected 'text' or 'i64'")
    source, names = _packs.image_source(
        paths=_paths(paths),
        form=form,
        classes=list(classes),
        image_field=image_field,
        label_field=label_field,
        label_key=label_key,
        has_i64_labels=label_form == "i64",
        size=size,
        shorter=shorter,
        random=_numbers(random),
        mean=mean,
        deviation=deviation,
        has_bytes=has_bytes,
        seed=seed,
        keep_bytes=keep_bytes,
    )
    return Images(source, names)


def _options(**options: Any) -> dict[str, Any]:
    return options


def open_utterances(
    paths: Path | Sequence[Path],
    alphabet: str,
    *,
    masks: SpecAugment | None = None,
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
    form: str = "by_name",
    audio_field: str = "",
    path_field: str = "",
    text_field: str = "",
    text_key: str = "",
    is_checked: bool = False,
    seed: int = 0,
) -> SourceSamples:
    """Audio with its text: FLAC, WAV, MP3 and Ogg in records, named by manifests, or as LibriSpeech lies in folders.

    alphabet       each of its characters is its place from 1 on.
    masks, is_normalized    of training; each feature over the utterance.
    sample_rate, n_fft, win_length, hop_length, n_mels    torchaudio's names; audio of other rates is resampled.
    stack, subsample    frames that one is made of; every so many frames one is kept.
    max_seconds, num_lengths    longer ones are left out; batches are padded to so many, a recording each.
    form           of files with other names, as of open_records.
    audio_field, path_field, text_field, text_key    by themselves flac, wav, mp3 or ogg; audio_filepath or path; text,
                   txt or sentence, or of a JSON object under a key.
    is_checked     decode all audio now, so that damage within a file is known and SkipDamaged may replace it.

    Samples are `features` f32 [frames, stack * n_mels], `num_frames` i32, `tokens` i32 [tokens], `num_tokens` i32, at
    their own lengths. Raises Error as open_images.
    """
    from trireme import _packs  # with the libraries of all packs

    mels = _options(n_fft=n_fft, win_length=win_length, hop_length=hop_length, n_mels=n_mels)
    names = _options(audio_field=audio_field, path_field=path_field, text_field=text_field)
    source = _packs.utterance_source(
        paths=_paths(paths),
        form=form,
        **names,
        text_key=text_key,
        is_checked=is_checked,
        alphabet=alphabet,
        sample_rate=sample_rate,
        **mels,
        is_normalized=is_normalized,
        masks=_numbers(masks),
        stack=stack,
        subsample=subsample,
        max_seconds=max_seconds,
        num_lengths=num_lengths,
        seed=seed,
    )
    return SourceSamples(source)


def open_volumes(
    images: Path,
    labels: Path = "",
    *,
    random: RandomPatch | None = None,
    patch: tuple[int, int, int] = (128, 128, 128),
    spacing: Triple | None = None,
    intensities: tuple[float, float, float, float] = (-79, 304, 101, 76.9),
    seed: int = 0,
    keep_bytes: int = 2 << 30,
) -> SourceSamples:
    """NIfTI volumes with labels, a patch of each case in an epoch, as MLPerf's 3D U-Net takes them.

    images, labels  two folders of files of the same names; or one with a folder for each case, KiTS's names in it.
    random          training; None: the middle.
    spacing         z, y, x in millimetres that all cases are resampled to, (1.6, 1.2, 1.2) of KiTS; None: the files'.
    intensities     low, high, mean, deviation: (min(max(value, low), high) - mean) / deviation.
    keep_bytes      of unpacked cases that each process keeps. Speed only.

    Samples are `image` f32 [1, *patch] and `label` u8 [*patch]; axes z, y, x. Raises Error as open_images.
    """
    from trireme import _packs  # with the libraries of all packs

    return SourceSamples(
        _packs.volume_source(
            images=images,
            labels=labels,
            patch=patch,
            intensities=intensities,
            spacing=spacing,
            random=_numbers(random),
            seed=seed,
            keep_bytes=keep_bytes,
        )
    )


def _numbers(options: Any) -> dict[str, float] | None:
    """Of a dataclass, by name."""
    return None if options is None else {name: float(n) for name, n in asdict(options).items()}


def _paths(paths: Path | Sequence[Path]) -> list[str]:
    many = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return [os.fspath(path) for path in many]
