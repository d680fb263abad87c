"""Audio and log-mel features, judged by Python's reader of WAV, torchaudio and torch."""

from __future__ import annotations

import contextlib
import itertools
import sys
import unittest
import wave
from pathlib import Path
from typing import Any

import judging

judging.require("numpy", "safetensors", "torch")

import numpy as np  # noqa: E402
import torch  # noqa: E402

# torchaudio has a venv of its own (requirements-torchaudio.txt). Its last release knows an older CUDA than this torch,
# and says so; what is used of it is Python over torch.
sys.path += map(
    str, Path(__file__).resolve().parents[2].glob("build/torchaudio/venv/lib/*/site-packages")
)
_cuda, torch.version.cuda = torch.version.cuda, None
judging.require("torchaudio")
import torchaudio  # noqa: E402

torch.version.cuda = _cuda

RNNT: dict[str, Any] = {"n_fft": 512, "win_length": 320, "hop_length": 160, "n_mels": 80}
WORDS = {"norm": None, "mel_scale": "htk", "pad_mode": "reflect"}
NUMBERS = {"sample_rate": 16000, "f_min": 0.0, "f_max": None, "power": 2.0, "center": True}
AT_REST = 1e-5  # of a logarithm: what f32 leaves of features that are not near its floor


def ours(samples: np.ndarray, log_offset: float, options: dict[str, Any]) -> np.ndarray:
    given = {
        name: 0 if value is None else int(value) if isinstance(value, bool) else value
        for name, value in options.items()
        if name not in WORDS
    }
    words = {name: options[name] or "none" for name in WORDS}
    arguments = {"samples": samples}
    made: np.ndarray = judging.call("log_mel", arguments, log_offset=log_offset, **given, **words)[
        "features"
    ]
    return made


def theirs(
    samples: np.ndarray, log_offset: float, options: dict[str, Any], dtype: torch.dtype
) -> np.ndarray:
    """torchaudio in this precision, filters and window too; transposed as ours are."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        mel = torchaudio.transforms.MelSpectrogram(**options)
        features = torch.log(mel(torch.from_numpy(samples).to(dtype)) + log_offset)
    finally:
        torch.set_default_dtype(before)
    return features.double().numpy().T


def speech_like(count: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    t = np.arange(count) / 16000
    loudness = np.abs(np.sin(2 * np.pi * 3 * t)) ** 3
    tones = sum(np.sin(2 * np.pi * 120 * k * t + k) / k for k in range(1, 30))
    return (0.1 * loudness * tones + 0.001 * random.normal(size=count)).astype(np.float32)


class LogMel(unittest.TestCase):
    def judge(self, samples: np.ndarray, log_offset: float = 1e-6, **options: object) -> None:
        """No further from torchaudio in f64 than torchaudio in f32 is, within a factor of two."""
        every = {**RNNT, **NUMBERS, **WORDS, **options}
        exact = theirs(samples, log_offset, every, torch.float64)
        other = np.abs(theirs(samples, log_offset, every, torch.float32) - exact)
        made = ours(samples, log_offset, every)
        self.assertEqual(made.shape, exact.shape)
        apart = np.abs(made - exact)
        self.assertLess(apart.max(), max(2 * other.max(), AT_REST), options)
        self.assertLess(apart.mean(), 2 * other.mean() + 1e-6, options)

    def test_options(self) -> None:
        samples = speech_like(20_000, 1)
        for scale, norm, power in itertools.product(
            ("htk", "slaney"), (None, "slaney"), (1.0, 2.0)
        ):
            self.judge(samples, mel_scale=scale, norm=norm, power=power)
        for center, pad_mode in ((False, "reflect"), (True, "constant")):
            self.judge(samples, center=center, pad_mode=pad_mode)
        self.judge(samples, f_min=80.0, f_max=7600.0)
        self.judge(samples, log_offset=2.0**-24)
        self.judge(samples, n_fft=400, win_length=400, hop_length=200, n_mels=128)  # its defaults
        self.judge(samples, sample_rate=22050, n_fft=1024, win_length=1024, hop_length=256)
        self.judge(samples, sample_rate=11025, n_fft=276, win_length=275, hop_length=110, n_mels=23)

    def test_lengths(self) -> None:
        for count in (257, 258, 319, 320, 321, 1000, 160 * 16, 160 * 17 - 1):
            self.judge(speech_like(count, count))

    def test_librispeech(self) -> None:
        folder = judging.DATA / "asr-librispeech-short" / "dev"
        if not folder.exists():
            self.skipTest("no ../shared/data/asr-librispeech-short")
        for file in sorted(folder.glob("*.flac"))[::12]:
            decoded = judging.call("audio", {"none": np.zeros(1, np.float32)}, file=file)
            self.assertEqual(decoded["rate"].tolist(), [16000])
            self.judge(decoded["samples"][0])


class Frames(unittest.TestCase):
    def test_formula(self) -> None:
        random = np.random.default_rng(3)
        for count, (stack, subsample) in itertools.product((2, 3, 50), ((1, 1), (3, 3), (4, 2))):
            x = (10 + random.normal(size=(count, 7))).astype(np.float32)
            made = judging.call("frames", {"features": x}, stack=stack, subsample=subsample)
            wide = torch.from_numpy(x).double()
            expected = (wide - wide.mean(0)) / (wide.std(0) + 1e-5)
            np.testing.assert_allclose(made["normalized"], expected, rtol=1e-6, atol=1e-6)
            padded = np.concatenate([x, np.zeros((stack, 7), np.float32)])
            stacked = [padded[t : t + stack].reshape(-1) for t in range(0, count, subsample)]
            np.testing.assert_array_equal(made["stacked"], stacked)


class Audio(unittest.TestCase):
    def test_digits(self) -> None:
        folder = judging.DATA / "asr-fsdd" / "dev"
        if not folder.exists():
            self.skipTest("no ../shared/data/asr-fsdd")
        for file in sorted(folder.glob("*.wav"))[::30]:
            made = judging.call("audio", {"none": np.zeros(1, np.float32)}, file=file)
            with contextlib.closing(wave.open(str(file))) as opened:
                frames = np.frombuffer(opened.readframes(opened.getnframes()), np.int16)
                self.assertEqual(made["rate"].tolist(), [opened.getframerate()])
            expected = frames.astype(np.float32)[None] / 32768
            np.testing.assert_array_equal(made["samples"], expected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    judging.main()
