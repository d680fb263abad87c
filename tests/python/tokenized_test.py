"""trireme.Tokenized beside the library that it uses, and the tokens of C++ beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trireme

tokenizers = pytest.importorskip(
    "tokenizers", reason="tokenizers is not installed; ./dev test installs it"
)

TEXTS = ["The cat sat.", "It slept, and it was warm there.", "Café!", "the the the cat"]


@pytest.fixture(params=["WordPiece", "BPE", "Unigram"])
def tokenizer_file(request: Any, tmp_path: Path) -> Path:
    """Trained on the texts, with tokens around."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if request.param == "Unigram":
        tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
        trainer = tokenizers.trainers.UnigramTrainer(
            vocab_size=60, special_tokens=names, unk_token="[UNK]"
        )
    else:
        model = getattr(tokenizers.models, request.param)
        tokenizer = tokenizers.Tokenizer(model(unk_token="[UNK]"))
        name = {"WordPiece": "WordPieceTrainer", "BPE": "BpeTrainer"}[request.param]
        trainer = getattr(tokenizers.trainers, name)(vocab_size=60, special_tokens=names)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=50)
    tokenizer.enable_truncation(2)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def samples() -> list[dict[str, Any]]:
    return [
        {"text": text.encode() if i % 2 else text, "label": torch.tensor(i), "name": b"x"}
        for i, text in enumerate(TEXTS)
    ]


def test_tokens_are_those_of_the_library(tokenizer_file: Path) -> None:
    plain = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    plain.no_padding()
    plain.no_truncation()
    tokenized = trireme.Tokenized(samples(), tokenizer_file, "text")
    for i, text in enumerate(TEXTS):
        sample = tokenized[i]
        assert set(sample) == {"text", "label"}
        assert sample["text"].dtype == torch.int64
        assert sample["text"].tolist() == plain.encode(text).ids
        assert sample["text"][0] == 2
    bare = trireme.Tokenized(samples(), plain, ["text"], special=False, max_length=3)
    assert [bare[i]["text"].tolist() for i in range(4)] == [
        plain.encode(text, add_special_tokens=False).ids[:3] for text in TEXTS
    ]
    assert plain.truncation is None, "the caller's own stays as it was"
    assert tokenized.vocabulary_size == plain.get_vocab_size()


def test_a_session_trains_on_tokens_of_records(tokenizer_file: Path, tmp_path: Path) -> None:
    texts = ["the" if i % 2 else text * 3 for i, text in enumerate(TEXTS * 3)]
    lines = [json.dumps({"text": text}) for text in texts]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    records = trireme.open_records(tmp_path / "texts.jsonl")
    data = trireme.Padded(
        trireme.Tokenized(records, tokenizer_file, "text", max_length=16),
        {"words": [8, 16]},
        {"text": {0: "words"}},
    )

    def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return (model(batch["text"]).mean(1) - 1).square().mean()

    torch.manual_seed(3)
    model = nn.Sequential(nn.Embedding(100, 4), nn.Linear(4, 1))
    session = trireme.Session(
        model, loss, data, batch_size=4, microbatch_size=2, lanes=1, serial=True, steps=60
    )
    losses = [report.loss for report in session]
    assert sum(losses[-6:]) < 0.8 * sum(losses[:6]), losses  # tokens of Unigram differ by run


def test_what_it_refuses(tmp_path: Path, tokenizer_file: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(trireme.Error, match=r"other.json' is no tokenizer.json") as failure:
        trireme.Tokenized(samples(), tmp_path / "other.json", "text")
    assert failure.value.kind == "corrupt data"
    with pytest.raises(trireme.Error, match="sample 0 has no field 'words'; it has text, label"):
        trireme.Tokenized(samples(), tokenizer_file, "words")[0]
    with pytest.raises(trireme.Error, match=r"sample 0, field 'text': not UTF-8, byte 1 is 0xff"):
        trireme.Tokenized([{"text": b"a\xff"}], tokenizer_file, "text")[0]
    with pytest.raises(ValueError, match="max_length is 0"):
        trireme.Tokenized(samples(), tokenizer_file, "text", max_length=0)
