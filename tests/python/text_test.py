"""Attention beside torch's."""

from typing import Any

import pytest
import torch

from trireme.text import attention, packed_attention

Heads = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def some_heads(dtype: torch.dtype = torch.float32) -> Heads:
    generator = torch.Generator().manual_seed(1)
    query, key, value = (
        torch.randn((2, 37, 3, 16), generator=generator).to(dtype).requires_grad_()
        for _ in range(3)
    )
    return query, key, value


def by_torch(query: Any, key: Any, value: Any, **options: Any) -> Any:
    heads = (tensor.transpose(1, 2) for tensor in (query, key, value))
    return torch.nn.functional.scaled_dot_product_attention(*heads, **options).transpose(1, 2)


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_that_of_torch(is_causal: bool) -> None:
    heads = some_heads()
    weight = torch.linspace(-1, 1, 37)[None, :, None, None]
    results = []
    for made in (attention(*heads, is_causal=is_causal), by_torch(*heads, is_causal=is_causal)):
        results.append((made, *torch.autograd.grad((made * weight).sum(), heads)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_padding_has_no_part() -> None:
    heads = some_heads()
    lengths = torch.tensor([37, 11])
    bias = torch.randn(3, 37, 37)
    made = attention(*heads, lengths=lengths, bias=bias)
    mask = (torch.arange(37) < lengths[:, None])[:, None, None, :]
    expected = by_torch(*heads, attn_mask=bias.masked_fill(~mask, -torch.inf))
    torch.testing.assert_close(made[0], expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(made[1, :11], expected[1, :11], rtol=1e-5, atol=1e-5)
    assert not made[1, 11:].any()
    for gradient in torch.autograd.grad(made.sum(), heads):
        assert not gradient[1, 11:].any()
    rows = [torch.cat([tensor[0], tensor[1, :11]]) for tensor in heads]
    packed = packed_attention(rows[0], rows[1], rows[2], torch.tensor([0, 37, 48]), bias=bias)
    assert torch.equal(packed, torch.cat([made[0], made[1, :11]]))


def test_dropout_repeats_with_the_seed() -> None:
    heads = some_heads()
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(attention(*heads, dropout_p=0.3))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_bf16_is_close_to_f32() -> None:
    heads = some_heads(torch.bfloat16)
    expected = attention(*(tensor.float() for tensor in heads))
    made = attention(*heads)
    assert made.dtype == torch.bfloat16
    assert torch.equal(made, expected.bfloat16())


def test_what_is_refused() -> None:
    query, key, value = some_heads()
    with pytest.raises(RuntimeError, match=r"key must have shape \[2, 37, 3, 16\]"):
        attention(query, key[:, :30], value)
    with pytest.raises(RuntimeError, match="query must be of type Float or BFloat16, is Double"):
        attention(query.double(), key, value)
    with pytest.raises(RuntimeError, match=r"lengths\[1\] must be in \[0, 37\], is 38"):
        attention(query, key, value, lengths=torch.tensor([1, 38]))
    with pytest.raises(RuntimeError, match="offsets must end with the number of tokens, 37"):
        packed_attention(query[0], key[0], value[0], torch.tensor([0, 7]))
