"""Text: fused multi-head attention of padded or packed sequences.

    out = trireme.text.attention(query, key, value, lengths=lengths, is_causal=True, dropout_p=0.1)

Operators are of f32 or bf16 (the arithmetic is f32) on the CPU and run on torch's threads, which change no bit. They
pass torch.compile and torch.export, and have a gradient, once. Formulas, sources and cost: packs/text/kernels.
"""

import torch

from trireme import libraries

libraries.load("trireme_text")
_ops = torch.ops.trireme

__all__ = ["attention", "packed_attention"]


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lengths: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    is_causal: bool = False,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """softmax(q k^T / sqrt(D) + bias) v with dropout, in one pass: no scores in memory, none for padding.

    query, key, value   f32 or bf16 [B, S, H, D], all of one type and shape. (torch's
                        scaled_dot_product_attention has [B, H, S, D].)
    lengths             integers [B]: tokens from there on are padding; None: none is.
    bias                f32 [H, length, length], added to the scores of every sequence; it gets no gradient.
    Returns             [B, S, H, D]; rows of padding are 0.
    Errors              RuntimeError for other types and shapes, lengths outside of [0, S].
    Cost                4 n^2 D operations a head of a sequence of n tokens, 10 backward; half if causal.
    Source              Dao et al., "FlashAttention", NeurIPS 2022.
    """
    return _ops.attention(query, key, value, lengths, bias, is_causal, dropout_p)


def packed_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    offsets: torch.Tensor,
    bias: torch.Tensor | None = None,
    is_causal: bool = False,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """The same for sequences behind each other, without padding.

    query, key, value   [tokens, H, D].
    offsets             integers [B + 1], from 0 to tokens: sequence b has the tokens offsets[b] .. offsets[b + 1].
    """
    return _ops.packed_attention(query, key, value, offsets, bias, is_causal, dropout_p)


# Shapes, for tracers.


@torch.library.register_fake("trireme::_packed_attention")
def _(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    offsets: torch.Tensor,
    bias: torch.Tensor | None,
    is_causal: bool,
    drop_probability: float,
    has_rest: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (
        torch.empty_like(query, memory_format=torch.contiguous_format),
        query.new_empty(query.shape[:2]),
        query.new_empty((1,), dtype=torch.int64),
    )


@torch.library.register_fake("trireme::_packed_attention_backward")
def _(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    offsets: torch.Tensor,
    bias: torch.Tensor | None,
    out: torch.Tensor,
    log_sum: torch.Tensor,
    seed: torch.Tensor,
    is_causal: bool,
    drop_probability: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dquery, dkey, dvalue = (
        torch.empty_like(tensor, memory_format=torch.contiguous_format)
        for tensor in (query, key, value)
    )
    return dquery, dkey, dvalue


@torch.library.register_fake("trireme::_order_tokens")
def _(lengths: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = lengths.new_empty((lengths.shape[0] * length,), dtype=torch.int64)
    return rows, lengths.new_empty((lengths.shape[0] + 1,), dtype=torch.int64)


@torch.library.register_fake("trireme::token_rows")
def _(lengths: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.library.get_ctx().new_dynamic_size()
    rows = lengths.new_empty((tokens,), dtype=torch.int64)
    return rows, lengths.new_empty((lengths.shape[0] + 1,), dtype=torch.int64)
