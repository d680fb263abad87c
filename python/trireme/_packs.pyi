"""The packs: metrics of arrays and optimizers of tensors."""

import collections.abc
import os

import numpy
import numpy.typing
import torch

import trireme._core

class AdafactorOptions:
    def __init__(
        self,
        learning_rate: float | None,
        warms_up: bool,
        scales_by_parameter: bool,
        decay_exponent: float,
        clip: float,
        beta1: float,
        weight_decay: float,
        epsilon1: float,
        epsilon2: float,
    ) -> None: ...

class CocoDetections:
    def __init__(self, json: str, has_masks: bool, truth: CocoGroundTruth, origin: str) -> None: ...
    @staticmethod
    def of_rows(rows: numpy.typing.ArrayLike, truth: CocoGroundTruth) -> CocoDetections: ...
    def __len__(self) -> int: ...

class CocoGroundTruth:
    def __init__(self, json: str, has_masks: bool, origin: str) -> None: ...
    @property
    def num_categories(self) -> int: ...
    @property
    def num_images(self) -> int: ...

class Components:
    @property
    def boxes(self) -> numpy.typing.NDArray[numpy.int64]: ...
    @property
    def labels(self) -> numpy.typing.NDArray[numpy.int32]: ...
    @property
    def map(self) -> numpy.typing.NDArray[numpy.int32]: ...
    @property
    def sizes(self) -> numpy.typing.NDArray[numpy.int64]: ...

class LogLoss:
    def __add__(self, other: LogLoss) -> LogLoss: ...
    @property
    def mean(self) -> float: ...
    @property
    def normalized_entropy(self) -> float: ...
    @property
    def num_positives(self) -> int: ...
    @property
    def num_samples(self) -> int: ...
    @property
    def sum(self) -> float: ...

class WordErrors:
    def __add__(self, other: WordErrors) -> WordErrors: ...
    @property
    def correct_words(self) -> int: ...
    @property
    def deletions(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def insertions(self) -> int: ...
    @property
    def num_utterances(self) -> int: ...
    @property
    def num_words(self) -> int: ...
    @property
    def sentence_error_rate(self) -> float: ...
    @property
    def substitutions(self) -> int: ...
    @property
    def word_error_rate(self) -> float: ...
    @property
    def wrong_utterances(self) -> int: ...

def adafactor(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    moments: collections.abc.Sequence[torch.Tensor],
    exp_avg: torch.Tensor | None,
    step: int,
    options: AdafactorOptions,
) -> None: ...
def adamw(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> None: ...
def align_words(
    reference: str, hypothesis: str, as_sclite: bool, ignores_case: bool
) -> list[tuple[str, str, str]]: ...
def area_of_runs(counts: str, size: tuple[int, int]) -> int: ...
def centroids(
    labels: numpy.typing.ArrayLike, num_labels: int
) -> numpy.typing.NDArray[numpy.float64]: ...
def connected_components_i32(labels: numpy.typing.ArrayLike, connectivity: int) -> Components: ...
def connected_components_u8(labels: numpy.typing.ArrayLike, connectivity: int) -> Components: ...
def count_word_errors(
    references: collections.abc.Sequence[str],
    hypotheses: collections.abc.Sequence[str],
    as_sclite: bool,
    ignores_case: bool,
) -> WordErrors: ...
def dice(
    num_classes: int,
    predicted: numpy.typing.ArrayLike,
    expected: numpy.typing.ArrayLike,
    smoothing: float,
) -> numpy.typing.NDArray[numpy.float64]: ...
def evaluate_coco(
    truth: CocoGroundTruth,
    detections: CocoDetections,
    of_masks: bool,
    max_dets: tuple[int, int, int],
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def have_one_layout(a: torch.Tensor, b: torch.Tensor) -> bool: ...
def image_source(
    paths: collections.abc.Sequence[os.PathLike[str] | str],
    form: str,
    classes: collections.abc.Sequence[str],
    image_field: str,
    label_field: str,
    label_key: str,
    has_i64_labels: bool,
    size: int,
    shorter: int,
    random: collections.abc.Mapping[str, float] | None,
    mean: tuple[float, float, float],
    deviation: tuple[float, float, float],
    has_bytes: bool,
    seed: int,
    keep_bytes: int,
) -> tuple[trireme._core.Source, list[str]]: ...
def lamb(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    adapts_always: bool,
) -> None: ...
def lars(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    buffer: torch.Tensor,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
    trust: float,
    epsilon: float,
    adapts: bool,
) -> None: ...
def log_loss_f32(
    probabilities: numpy.typing.ArrayLike, labels: numpy.typing.ArrayLike
) -> LogLoss: ...
def log_loss_f64(
    probabilities: numpy.typing.ArrayLike, labels: numpy.typing.ArrayLike
) -> LogLoss: ...
def novograd(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    exp_avg: torch.Tensor,
    second_moment: float,
    step: int,
    learning_rate: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
    averages_gradients: bool,
) -> float: ...
def roc_auc(scores: numpy.typing.ArrayLike, labels: numpy.typing.ArrayLike) -> float: ...
def runs_of_pixels(pixels: numpy.typing.ArrayLike) -> str: ...
def runs_of_soft_mask(
    values: numpy.typing.ArrayLike, box: tuple[float, float, float, float], size: tuple[int, int]
) -> str: ...
def sgd(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    buffer: torch.Tensor | None,
    step: int,
    learning_rate: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> None: ...
def utterance_source(
    paths: collections.abc.Sequence[os.PathLike[str] | str],
    form: str,
    audio_field: str,
    path_field: str,
    text_field: str,
    text_key: str,
    is_checked: bool,
    alphabet: str,
    sample_rate: int,
    n_fft: int,
    win_length: int,
    hop_length: int,
    n_mels: int,
    is_normalized: bool,
    masks: collections.abc.Mapping[str, float] | None,
    stack: int,
    subsample: int,
    max_seconds: float,
    num_lengths: int,
    seed: int,
) -> trireme._core.Source: ...
def volume_source(
    images: os.PathLike[str] | str,
    labels: os.PathLike[str] | str,
    patch: tuple[int, int, int],
    intensities: tuple[float, float, float, float],
    spacing: tuple[float, float, float] | None,
    random: collections.abc.Mapping[str, float] | None,
    seed: int,
    keep_bytes: int,
) -> trireme._core.Source: ...
