"""Models that users train, and the same cut by hand into parts, as a pipeline of modules wants them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

BATCH = 32
MICROBATCH = 4
LEARNING_RATE = 1e-4
LENGTH = 128  # tokens of a sequence
VOCABULARY = 4096


@dataclass(frozen=True)
class Workload:
    """make(): the model, the same weights each time; parts(model): its modules in order, tensor to tensor, that
    share its weights; output(model, x): the same tensor by the model itself; loss(output, y)."""

    make: Callable[[], nn.Module]
    parts: Callable[[nn.Module], list[nn.Module]]
    output: Callable[[nn.Module, Tensor], Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]
    x: Tensor
    y: Tensor
    optimizer: str = "adamw"

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=LEARNING_RATE, fused=True)
        return torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0, fused=True)


class Part(nn.Module):
    """Modules and what is called of them."""

    def __init__(self, modules: dict[str, nn.Module], call: Callable[..., Tensor]) -> None:
        super().__init__()
        self.inner = nn.ModuleDict(modules)
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.inner, x)


def _tensor(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    return output if isinstance(output, Tensor) else output[0]


def _block(block: nn.Module) -> Part:
    return Part({"block": block}, lambda m, x: _tensor(m["block"](x)))


def _gpt2() -> nn.Module:
    import transformers as hf

    config = hf.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=256,
        n_layer=8,
        n_head=4,
        n_positions=LENGTH,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        tie_word_embeddings=False,  # a weight on two stages is nothing that the peer can train
    )
    return hf.GPT2LMHeadModel(config)


def _gpt2_parts(model: nn.Module) -> list[nn.Module]:
    body = model.transformer

    def embed(m: nn.ModuleDict, x: Tensor) -> Tensor:
        return m["wte"](x) + m["wpe"](torch.arange(x.shape[1])[None])

    return [
        Part({"wte": body.wte, "wpe": body.wpe}, embed),
        *(_block(block) for block in body.h),
        Part(
            {"norm": body.ln_f, "head": model.lm_head},
            lambda m, x: m["head"](m["norm"](x)),
        ),
    ]


def _bert() -> nn.Module:
    import transformers as hf

    config = hf.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_hidden_layers=8,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        tie_word_embeddings=False,
    )
    return hf.BertForMaskedLM(config)


def _bert_parts(model: nn.Module) -> list[nn.Module]:
    return [
        Part({"embed": model.bert.embeddings}, lambda m, x: m["embed"](input_ids=x)),
        *(_block(layer) for layer in model.bert.encoder.layer),
        Part({"head": model.cls}, lambda m, x: m["head"](x)),
    ]


def _resnet50() -> nn.Module:
    import torchvision

    return torchvision.models.resnet50(num_classes=100)


def _resnet50_parts(model: nn.Module) -> list[nn.Module]:
    blocks = [block for n in range(1, 5) for block in getattr(model, f"layer{n}")]
    return [
        nn.Sequential(model.conv1, model.bn1, model.relu, model.maxpool),
        *blocks,
        nn.Sequential(model.avgpool, nn.Flatten(), model.fc),
    ]


def _token_loss(logits: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), y.flatten())


def _tokens(batch: int) -> Tensor:
    return torch.randint(VOCABULARY, (batch, LENGTH))


def make(name: str, batch: int = BATCH) -> Workload:
    torch.manual_seed(0)

    def same_weights(build: Callable[[], nn.Module]) -> nn.Module:
        torch.manual_seed(1)
        return build()

    if name == "resnet50":
        x, y = torch.randn(batch, 3, 96, 96), torch.randint(100, (batch,))
        return Workload(
            lambda: same_weights(_resnet50),
            _resnet50_parts,
            lambda m, x: m(x),
            functional.cross_entropy,
            x,
            y,
            "sgd",  # Adam makes much of small gradients
        )
    build, parts = {"gpt2": (_gpt2, _gpt2_parts), "bert": (_bert, _bert_parts)}[name]
    return Workload(
        lambda: same_weights(build),
        parts,
        lambda m, x: m(input_ids=x).logits,
        _token_loss,
        _tokens(batch),
        _tokens(batch),
    )


NAMES = ("gpt2", "bert", "resnet50")
