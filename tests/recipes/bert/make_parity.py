"""Writes the expected numbers of parity_test.cc: losses and gradients of the public BERT.

    python3 -m venv VENV && VENV/bin/pip install torch transformers==5.24.0
    VENV/bin/python make_parity.py

Reference: BertForPreTraining of Hugging Face transformers (Apache 2.0), in f64. Weights follow a
closed formula, so that none need be stored: parity_test.cc has the same one.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForPreTraining

HERE = Path(__file__).resolve().parent
BATCH, LENGTH, PREDICTIONS = 3, 11, 2
VOCABULARY, POSITIONS, CHANNELS, INNER, HEADS, BLOCKS = 24, 13, 8, 12, 2, 2
LENGTHS = [11, 7, 9]

BLOCK = "bert.encoder.layer.{}."
NAMES = {
    "embeddings.tokens.weight": ["bert.embeddings.word_embeddings.weight"],
    "embeddings.positions.weight": ["bert.embeddings.position_embeddings.weight"],
    "embeddings.types.weight": ["bert.embeddings.token_type_embeddings.weight"],
    "embeddings.norm": ["bert.embeddings.LayerNorm"],
    "transform": ["cls.predictions.transform.dense"],
    "transform_norm": ["cls.predictions.transform.LayerNorm"],
    "masked_bias": ["cls.predictions.bias"],
    "pooler": ["bert.pooler.dense"],
    "next": ["cls.seq_relationship"],
}
IN_BLOCK = {
    "query_key_value": [f"attention.self.{part}" for part in ("query", "key", "value")],
    "attention_output": ["attention.output.dense"],
    "attention_norm": ["attention.output.LayerNorm"],
    "inner": ["intermediate.dense"],
    "output": ["output.dense"],
    "norm": ["output.LayerNorm"],
}


def weight(name: str, shape: list[int]) -> torch.Tensor:
    """Element i in C order; parity_test.cc has the same formula."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64) + sum(name.encode())
    wave = torch.sin(1e-3 * i * i).reshape(shape)
    return 1 + 0.1 * wave if len(shape) == 1 else 1.5 * wave / shape[-1] ** 0.5


def tokens() -> torch.Tensor:
    i = torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH)
    return 1 + (i * i + 3 * i + i // 5) % (VOCABULARY - 1)


def our_names() -> dict[str, list[str]]:
    """Our parameters, each with those of the reference that it holds below each other."""
    parts = dict(NAMES)
    for block in range(BLOCKS):
        for ours, theirs in IN_BLOCK.items():
            parts[f"blocks.{block}.{ours}"] = [BLOCK.format(block) + name for name in theirs]
    names = {}
    for ours, theirs in parts.items():
        if ours.endswith(".weight") or ours == "masked_bias":
            names[ours] = theirs
        else:
            for kind in ("weight", "bias"):
                names[f"{ours}.{kind}"] = [f"{name}.{kind}" for name in theirs]
    return names


def expected() -> dict[str, torch.Tensor]:
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=CHANNELS,
        num_hidden_layers=BLOCKS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    model = BertForPreTraining(config).double()
    theirs = dict(model.named_parameters())
    for name, parts in our_names().items():
        shape = list(theirs[parts[0]].shape)
        rows = weight(name, [shape[0] * len(parts), *shape[1:]]).chunk(len(parts))
        for part, row in zip(parts, rows, strict=True):
            theirs[part].data.copy_(row)
    lengths = torch.tensor(LENGTHS).unsqueeze(1)
    places = torch.arange(LENGTH).unsqueeze(0)
    labels = torch.full((BATCH, LENGTH), -100)
    for row in range(BATCH):
        for prediction in range(PREDICTIONS):
            labels[row, 1 + 3 * prediction + row] = 2 + 5 * prediction + row
    output = model(
        input_ids=tokens() * (places < lengths),
        attention_mask=(places < lengths).long(),
        token_type_ids=((places >= 4) & (places < lengths)).long(),
        labels=labels,
        next_sentence_label=torch.tensor([0, 1, 1]),
    )
    output.loss.backward()
    result = {"loss": output.loss.detach(), "next_logits": output.seq_relationship_logits.detach()}
    picked = labels != -100
    result["masked_logits"] = output.prediction_logits[picked].detach()
    for name, parts in our_names().items():
        result[f"gradient.{name}"] = torch.cat([theirs[part].grad for part in parts])
    return {name: tensor.float().contiguous() for name, tensor in result.items()}


if __name__ == "__main__":
    save_file(expected(), HERE / "parity.safetensors")
