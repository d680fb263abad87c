"""Writes the expected numbers of parity_test.cc: logits, loss and gradients of the public T5.

    python3 -m venv VENV && VENV/bin/pip install transformers==4.44.2 jax==0.4.30 \
        jaxlib==0.4.30 flax==0.8.5 'numpy<2'
    VENV/bin/python make_parity.py

Reference: FlaxT5ForConditionalGeneration of Hugging Face transformers (Apache 2.0), in f64. Weights
follow a closed formula, so that none need be stored: parity_test.cc has the same one.
"""

import os
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file
from transformers import T5Config
from transformers.models.t5.modeling_flax_t5 import (
    FlaxT5Attention,
    FlaxT5ForConditionalGenerationModule,
)

HERE = Path(__file__).resolve().parent
BATCH, INPUTS, TARGETS = 3, 21, 13
VOCABULARY, D_MODEL, D_FF, D_KV, HEADS, LAYERS = 24, 8, 10, 3, 2, 2
BUCKETS, MAX_DISTANCE = 8, 12
DISTANCES = np.arange(-200, 201)

Weights = dict[str, np.ndarray]
Tree = dict[str, "Tree | np.ndarray"]


def weight(name: str, *shape: int) -> np.ndarray:
    """Element i in C order; parity_test.cc has the same formula."""
    i = np.arange(np.prod(shape)) + sum(name.encode())
    wave = np.sin(1e-3 * i * i).reshape(shape)
    return 1 + 0.1 * wave if len(shape) == 1 else 1.5 * wave / np.sqrt(shape[-1])


def tokens(rows: int, columns: int, num_padded: int) -> np.ndarray:
    """[rows, columns]; the last `num_padded` of the last row are padding."""
    i = np.arange(rows * columns).reshape(rows, columns)
    result = 1 + (i * i + 3 * i + i // 5) % (VOCABULARY - 1)
    if num_padded:
        result[-1, -num_padded:] = 0
    return result


def attention_weights(name: str, kind: str) -> Weights:
    """Of one attention of ours."""
    inner = HEADS * D_KV
    weights = {f"{name}.output.weight": weight(f"{name}.output.weight", D_MODEL, inner)}
    parts = {"query_key_value": 3} if kind == "self" else {"query": 1, "key_value": 2}
    for part, count in parts.items():
        full = f"{name}.{part}.weight"
        weights[full] = weight(full, count * inner, D_MODEL)
    return weights


def our_weights(is_gated: bool) -> Weights:
    """By our names, in our shapes."""

    def norm(name: str) -> Weights:
        return {f"{name}.weight": weight(f"{name}.weight", D_MODEL)}

    weights: Weights = {"embedding.weight": weight("embedding.weight", VOCABULARY, D_MODEL)}
    if is_gated:
        weights["head.weight"] = weight("head.weight", VOCABULARY, D_MODEL)
    for stack in ("encoder", "decoder"):
        table = f"{stack}.position_bias.table.weight"
        weights[table] = weight(table, BUCKETS, HEADS)
        weights |= norm(f"{stack}.norm")
        for layer in range(LAYERS):
            name = f"{stack}.layers.{layer}"
            weights |= norm(f"{name}.attention_norm") | norm(f"{name}.feed_forward_norm")
            weights |= attention_weights(f"{name}.attention", "self")
            if stack == "decoder":
                weights |= norm(f"{name}.cross_norm")
                weights |= attention_weights(f"{name}.cross", "cross")
            rows = (2 if is_gated else 1) * D_FF
            full = f"{name}.feed_forward.input.weight"
            weights[full] = weight(full, rows, D_MODEL)
            full = f"{name}.feed_forward.output.weight"
            weights[full] = weight(full, D_MODEL, D_FF)
    return weights


def kernels(parts: dict[str, jnp.ndarray]) -> Tree:
    """The reference keeps [inputs, outputs]."""
    return {name: {"kernel": part.T} for name, part in parts.items()}


def attention_tree(ours: Weights, name: str) -> Tree:
    if f"{name}.query_key_value.weight" in ours:
        q, k, v = jnp.split(ours[f"{name}.query_key_value.weight"], 3)
    else:
        q = ours[f"{name}.query.weight"]
        k, v = jnp.split(ours[f"{name}.key_value.weight"], 2)
    return kernels({"q": q, "k": k, "v": v, "o": ours[f"{name}.output.weight"]})


def layer_tree(ours: Weights, stack: str, layer: int, is_gated: bool) -> Tree:
    name = f"{stack}.layers.{layer}"

    def norm(which: str) -> Tree:
        return {"weight": ours[f"{name}.{which}.weight"]}

    attention = attention_tree(ours, f"{name}.attention")
    if layer == 0:
        attention["relative_attention_bias"] = {
            "embedding": ours[f"{stack}.position_bias.table.weight"]
        }
    parts = [{"SelfAttention": attention, "layer_norm": norm("attention_norm")}]
    if stack == "decoder":
        cross = attention_tree(ours, f"{name}.cross")
        parts.append({"EncDecAttention": cross, "layer_norm": norm("cross_norm")})
    wi = ours[f"{name}.feed_forward.input.weight"]
    names = {"wi_0": jnp.split(wi, 2)[0], "wi_1": jnp.split(wi, 2)[1]} if is_gated else {"wi": wi}
    dense = kernels(names | {"wo": ours[f"{name}.feed_forward.output.weight"]})
    parts.append({"DenseReluDense": dense, "layer_norm": norm("feed_forward_norm")})
    return {"layer": {str(i): part for i, part in enumerate(parts)}}


def reference_tree(ours: Weights, is_gated: bool) -> Tree:
    """Our weights under the reference's names."""
    tree: Tree = {"shared": {"embedding": ours["embedding.weight"]}}
    for stack in ("encoder", "decoder"):
        tree[stack] = {
            "block": {str(i): layer_tree(ours, stack, i, is_gated) for i in range(LAYERS)},
            "final_layer_norm": {"weight": ours[f"{stack}.norm.weight"]},
        }
    if is_gated:
        tree["lm_head"] = {"kernel": ours["head.weight"].T}
    return tree


def expected(is_gated: bool) -> Weights:
    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=D_MODEL,
        d_kv=D_KV,
        d_ff=D_FF,
        num_layers=LAYERS,
        num_heads=HEADS,
        relative_attention_num_buckets=BUCKETS,
        relative_attention_max_distance=MAX_DISTANCE,
        dropout_rate=0.0,
        feed_forward_proj="gated-gelu" if is_gated else "relu",
        tie_word_embeddings=not is_gated,
    )
    module = FlaxT5ForConditionalGenerationModule(config, dtype=jnp.float64)
    inputs, targets = tokens(BATCH, INPUTS, 4), tokens(BATCH, TARGETS, 5)
    shifted = np.concatenate([np.zeros((BATCH, 1), int), targets[:, :-1]], 1)

    def run(ours: Weights) -> tuple[jnp.ndarray, jnp.ndarray]:
        logits = module.apply(
            {"params": reference_tree(ours, is_gated)},
            input_ids=inputs,
            attention_mask=(inputs != 0).astype(int),
            decoder_input_ids=shifted,
            decoder_attention_mask=np.ones_like(shifted),
            deterministic=True,
        ).logits
        logs = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)[..., 0]
        mask = targets != 0
        return -(logs * mask).sum() / mask.sum(), logits

    (loss, logits), gradients = jax.value_and_grad(run, has_aux=True)(our_weights(is_gated))
    result = {f"gradient.{name}": gradient for name, gradient in gradients.items()}
    return result | {"loss": loss, "logits": logits}


def main() -> None:
    arrays: Weights = {}
    for variant, is_gated in (("v10", False), ("v11", True)):
        arrays |= {f"{variant}.{name}": a for name, a in expected(is_gated).items()}
    for name, is_both in (("both", True), ("before", False)):
        arrays[f"buckets.{name}"] = FlaxT5Attention._relative_position_bucket(
            DISTANCES, bidirectional=is_both, num_buckets=32, max_distance=128
        )
    save_file(
        {name: np.asarray(a, np.float32) for name, a in arrays.items()},
        HERE / "parity.safetensors",
    )


if __name__ == "__main__":
    main()
