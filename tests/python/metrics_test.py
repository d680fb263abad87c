"""Metrics of an evaluation, made of outputs of all its samples."""

from typing import Any

import pytest
import torch
from torch import nn

import trireme
from trireme.metrics import accuracy, roc_auc, top_k_accuracy
from trireme.ranking import roc_auc_score


def test_metrics_are_of_all_samples_in_order() -> None:
    inputs, kinds = torch.randn(90, 8), torch.arange(90) % 3
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> list[trireme.Loss]:
        scores = model(batch["x"])
        return [
            trireme.mean_loss(nn.functional.cross_entropy(scores, batch["kind"])),
            trireme.output(scores, "scores"),
            trireme.output(batch["kind"], "kind"),
        ]

    seen: dict[str, Any] = {}

    def measure(outputs: dict[str, Any]) -> dict[str, float]:
        seen.update(outputs)
        positive = outputs["kind"] == 1
        return {"AUC": roc_auc_score(positive, outputs["scores"][:, 1])}

    data = {"x": inputs[:64], "kind": kinds[:64]}
    held_out = {"x": inputs[64:], "kind": kinds[64:]}
    session = trireme.Session(
        model,
        loss,
        data,
        evaluation=held_out,
        metrics=[measure, accuracy("scores", "kind"), top_k_accuracy(2, "scores", "kind")],
        plan="even",
    )
    found = session.evaluate()
    session.close()
    with torch.no_grad():
        scores = model(held_out["x"])
    torch.testing.assert_close(seen["scores"], scores)
    assert torch.equal(seen["kind"], held_out["kind"])
    auc = roc_auc_score(held_out["kind"] == 1, scores[:, 1])
    names = [total.name for total in found.losses]
    assert names == ["loss", "AUC", "accuracy", "top2_accuracy"]
    assert found.losses[2].mean == (scores.argmax(1) == held_out["kind"]).double().mean()
    assert found.losses[1].mean == pytest.approx(auc)
    assert found.total == pytest.approx(
        nn.functional.cross_entropy(scores, held_out["kind"]).item()
    )

    def fails(outputs: dict[str, Any]) -> dict[str, float]:
        raise KeyError("no such output")

    for metric, message in (
        (fails, "model failure: a metric of the evaluation failed: KeyError: 'no such output'"),
        (roc_auc(), "there is no output 'labels', only 'kind', 'scores'"),
        (
            lambda outputs: {"nothing": float("nan")},
            "the metric 'nothing' of the evaluation is nan",
        ),
    ):
        session = trireme.Session(
            model, loss, data, evaluation=held_out, metrics=metric, plan="even"
        )
        with pytest.raises(trireme.Error, match=message):
            session.evaluate()
