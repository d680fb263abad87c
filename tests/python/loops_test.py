"""Training loops of Hugging Face and Lightning, over DistributedModel."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import models
import trireme

transformers = pytest.importorskip("transformers")
lightning = pytest.importorskip("lightning")


def samples(name: str) -> list[dict[str, torch.Tensor]]:
    data = models.case(name).data
    return [{key: value[i] for key, value in data.items()} for i in range(32)]


def arguments(folder: Path, **options: Any) -> Any:
    return transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        weight_decay=0.1,
        warmup_steps=2,
        max_steps=5,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        seed=3,
        **options,
    )


def make_gpt2() -> torch.nn.Module:
    torch.manual_seed(1)
    case = models.case("gpt2")
    torch.manual_seed(1)
    model = case.make()
    for module in model.modules():  # its random numbers are not those of torch's own loop
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


class InOrder(transformers.Trainer):  # type: ignore[name-defined]
    """The peer, with the order of samples that our loop has."""

    def get_train_dataloader(self) -> Any:
        from trireme import loops

        return [
            microbatch
            for batch in loops.batches(samples("gpt2"), 8, seed=3)
            for microbatch in (
                {key: value[:4] for key, value in batch.items()},
                {key: value[4:] for key, value in batch.items()},
            )
        ]


def test_a_hugging_face_training_has_the_losses_of_their_trainer(tmp_path: Path) -> None:
    trireme.init({"microbatches": 2})
    from trireme.hugging_face import Trainer

    ours = Trainer(make_gpt2(), arguments(tmp_path / "ours"), samples("gpt2"), samples("gpt2"))
    ours.max_steps = 4  # an epoch; the schedule is that of five
    ours.train()
    theirs = InOrder(make_gpt2(), arguments(tmp_path / "theirs"), train_dataset=samples("gpt2"))
    theirs.train()
    losses = [line["loss"] for line in theirs.state.log_history if "loss" in line][:4]
    assert [line["loss"] for line in ours.log_history] == pytest.approx(losses, abs=1e-4)
    assert ours.evaluate()["eval_loss"] < math.log(
        100
    )  # a mean over the 15 tokens that are predicted
    ours.save_model(str(tmp_path / "model"))
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "model")
    for name, value in ours.model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_a_hugging_face_training_is_resumed(tmp_path: Path) -> None:
    trireme.init({"microbatches": 2})
    from trireme.hugging_face import Trainer

    whole = Trainer(make_gpt2(), arguments(tmp_path / "whole"), samples("gpt2"))
    whole.train()
    options = {"save_strategy": "steps", "save_steps": 2}
    first = Trainer(make_gpt2(), arguments(tmp_path / "run", **options), samples("gpt2"))
    first.max_steps = 2
    first.train()
    torch.manual_seed(9)
    rest = Trainer(make_gpt2(), arguments(tmp_path / "run", **options), samples("gpt2"))
    rest.train(resume_from_checkpoint=True)
    assert [line["loss"] for line in rest.log_history] == [
        line["loss"] for line in whole.log_history[2:]
    ]


def test_arguments_that_ask_for_what_is_not_here_are_refused(tmp_path: Path) -> None:
    from trireme.hugging_face import Trainer

    with pytest.raises(ValueError, match="torch_compile=True is not available"):
        Trainer(make_gpt2(), arguments(tmp_path, torch_compile=True), samples("gpt2"))


def test_bf16_is_that_of_their_trainer(tmp_path: Path) -> None:
    trireme.init({"microbatches": 2})
    from trireme.hugging_face import Trainer

    ours = Trainer(make_gpt2(), arguments(tmp_path / "ours", bf16=True), samples("gpt2"))
    ours.max_steps = 4
    ours.train()
    plain = Trainer(make_gpt2(), arguments(tmp_path / "plain"), samples("gpt2"))
    plain.max_steps = 4
    plain.train()
    theirs = InOrder(
        make_gpt2(), arguments(tmp_path / "theirs", bf16=True), train_dataset=samples("gpt2")
    )
    theirs.train()
    losses = [line["loss"] for line in theirs.state.log_history if "loss" in line][:4]
    assert [line["loss"] for line in ours.log_history] == pytest.approx(losses, abs=2e-3)
    assert ours.log_history != plain.log_history


def test_gradient_checkpointing_changes_no_loss(tmp_path: Path) -> None:
    trireme.init({"microbatches": 2})
    from trireme.hugging_face import Trainer

    kept = Trainer(make_gpt2(), arguments(tmp_path / "kept"), samples("gpt2"))
    kept.train()
    again = Trainer(
        make_gpt2(), arguments(tmp_path / "again", gradient_checkpointing=True), samples("gpt2")
    )
    again.train()
    assert again.log_history == kept.log_history
    again.model.plan.save(tmp_path / "plan.json")
    stages = json.loads((tmp_path / "plan.json").read_text())["stages"]
    assert all(stage["recompute"] for stage in stages)


class Regression(lightning.LightningModule):  # type: ignore[name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x, y = batch
        return (self.layer(x)[:, 0] - y).square().mean()

    validation_step = training_step

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def test_a_lightning_module_is_trained_as_by_lightning(tmp_path: Path) -> None:
    trireme.init({"microbatches": 2})
    from trireme.lightning import Trainer

    torch.manual_seed(0)
    x = torch.randn(32, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=8)
    torch.manual_seed(1)
    ours, theirs = Regression(), Regression()
    theirs.load_state_dict(ours.state_dict())
    trainer = Trainer(max_epochs=2)
    trainer.fit(ours, loader, loader)
    peer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    peer.fit(theirs, loader, loader)
    assert len(trainer.history) == 8
    assert trainer.validations[1] < trainer.history[0]
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), atol=1e-6, rtol=1e-5)
