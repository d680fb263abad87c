"""Models as users write them, small, each with data and a loss; none knows of Trireme."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional


@dataclass
class Case:
    """make(): the module; data: 32 samples; loss(module, batch), or none where the module returns its own."""

    make: Callable[[], nn.Module]
    data: Any
    loss: Callable[[nn.Module, Any], torch.Tensor] | None = None


def tokens(samples: int, vocabulary: int = 100, length: int = 16) -> torch.Tensor:
    return torch.randint(3, vocabulary, (samples, length))


class Mlp(nn.Module):
    """Three layers; the last shares its weight with the first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle = nn.Linear(16, 32), nn.Linear(32, 32)
        self.last = nn.Linear(16, 32)
        self.last.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(functional.gelu(self.middle(functional.relu(self.first(x))))[:, :16])


class Transformer(nn.Module):
    """torch's own, with one weight for embedding and output."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.body = nn.Transformer(32, 4, 2, 2, 64, batch_first=True)
        self.output = nn.Linear(32, 50)
        self.output.weight = self.embedding.weight

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.output(self.body(self.embedding(source), self.embedding(target)))


def _block(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class UNet(nn.Module):
    """Two levels with skips, as segmentation uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_block(1, 8), _block(8, 16)])
        self.bottom = _block(16, 32)
        self.up = nn.ModuleList([_block(48, 16), _block(24, 8)])
        self.output = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for block, skip in zip(self.up, reversed(skips), strict=True):
            x = block(torch.cat([functional.interpolate(x, scale_factor=2), skip], 1))
        return self.output(x)


# What the configurations of Hugging Face have in common here, by what they call it.
_LAYERS = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_size": 32,
}
_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
_OPTIONS: dict[str, dict[str, Any]] = {
    "t5": {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_heads": 4,
        "decoder_start_token_id": 0,
    },
    "bert": _LAYERS,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32},
    "llama": {**_LAYERS, "num_key_value_heads": 2},
    "vit": {**_LAYERS, "image_size": 32, "patch_size": 8},
    "whisper": {
        **_SPECIAL,
        "d_model": 32,
        **{f"{part}_layers": 2 for part in ("encoder", "decoder")},
        **{f"{part}_attention_heads": 4 for part in ("encoder", "decoder")},
        **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
        "num_mel_bins": 16,
        "max_source_positions": 32,
        "max_target_positions": 32,
    },
}
_CLASSES = {
    "t5": ("T5Config", "T5ForConditionalGeneration"),
    "bert": ("BertConfig", "BertForMaskedLM"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "vit": ("ViTConfig", "ViTForImageClassification"),
    "whisper": ("WhisperConfig", "WhisperForConditionalGeneration"),
}


def _padded() -> Case:
    """BERT with sequences of other lengths, as tokenizers give them; some microbatches are without padding."""
    case = _hugging_face("bert")
    lengths = torch.tensor([16] * 8 + [5, 9, 16, 12] * 6)
    case.data["attention_mask"] = (torch.arange(16) < lengths[:, None]).long()
    return case


def _hugging_face(name: str) -> Case:
    import transformers as hf

    vocabulary = {} if name == "vit" else {"vocab_size": 100}
    data: dict[str, torch.Tensor] = {"input_ids": tokens(32), "labels": tokens(32)}
    if name == "vit":
        data = {"pixel_values": torch.randn(32, 3, 32, 32), "labels": torch.randint(0, 2, (32,))}
    if name == "whisper":
        data = {"input_features": torch.randn(32, 16, 64), "labels": tokens(32)}
    config_class, model_class = _CLASSES[name]
    config = getattr(hf, config_class)(**vocabulary, **_OPTIONS[name])
    return Case(lambda: getattr(hf, model_class)(config), data)


def _resnet(name: str) -> nn.Module:
    import torchvision

    return getattr(torchvision.models, name)(num_classes=10)


HUGGING_FACE = ("t5", "bert", "gpt2", "llama", "vit", "whisper")
LARGE = "resnet50"  # for slow tests
NAMES = ("mlp", "transformer", "unet", "resnet18", "bert_padded", *HUGGING_FACE)


def case(name: str, seed: int = 0) -> Case:
    """The same data and, by `make`, the same weights each time: call torch.manual_seed before `make`."""
    torch.manual_seed(seed)
    cross_entropy = functional.cross_entropy
    if name == "mlp":
        return Case(
            Mlp,
            {"x": torch.randn(32, 16), "y": torch.randint(0, 32, (32,))},
            lambda m, b: cross_entropy(m(b["x"]), b["y"]),
        )
    if name == "transformer":
        return Case(
            Transformer,
            (tokens(32, 50), tokens(32, 50)),
            lambda m, b: cross_entropy(m(*b).flatten(0, 1), b[1].flatten()),
        )
    if name == "unet":
        return Case(
            UNet,
            (torch.randn(32, 1, 16, 16), torch.randint(0, 2, (32, 16, 16))),
            lambda m, b: cross_entropy(m(b[0]), b[1]),
        )
    if name.startswith("resnet"):
        return Case(
            lambda: _resnet(name),
            (torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))),
            lambda m, b: cross_entropy(m(b[0]), b[1]),
        )
    return _padded() if name == "bert_padded" else _hugging_face(name)
