"""Image models of timm, as they come: what the recorder makes of each (docs/concepts/recording.md has the table)."""

from pathlib import Path

import pytest
import torch

import trireme

TABLE = (Path(__file__).parents[2] / "docs" / "concepts" / "recording.md").read_text().splitlines()

RECORDED = (
    "cait_xxs24_224",
    "convnext_atto",
    "crossvit_tiny_240",
    "deit_tiny_patch16_224",
    "densenet121",
    "edgenext_xx_small",
    "efficientnet_b0",
    "fastvit_t8",
    "ghostnet_100",
    "gmlp_s16_224",
    "hrnet_w18_small",
    "inception_next_atto",
    "levit_128s",
    "mixer_s16_224",
    "mobilenetv3_small_100",
    "poolformer_s12",
    "regnetx_002",
    "resmlp_12_224",
    "resnet18",
    "resnext50_32x4d",
    "swin_tiny_patch4_window7_224",
    "vgg11_bn",
    "vit_tiny_patch16_224",
    "xcit_nano_12_p16_224",
)


@pytest.mark.parametrize("name", RECORDED)
def test_is_recorded_cut_and_trained(name: str) -> None:
    """The first step of its three stages is compared with the module itself, bit by bit."""
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=10)
    size = model.default_cfg["input_size"]
    data = {"x": torch.randn(4, *size), "y": torch.randint(0, 10, (4,))}
    session = trireme.Session(
        model,
        lambda m, b: torch.nn.functional.cross_entropy(m(b["x"]), b["y"]),
        data,
        stages=3,
        serial=True,
        steps=1,
        batch_size=4,
        microbatch_size=2,
    )
    assert all(report.loss > 0 for report in session)
    row = f"| {name} | {len(session.graph.node_names)} | {len(session.graph.allowed_cuts)} |"
    assert row in TABLE, f"docs/concepts/recording.md has another row: {row}"
