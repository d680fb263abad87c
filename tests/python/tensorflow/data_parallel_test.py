"""Two ranks with half a batch each, beside one process with the whole batch."""

from functools import cache
from typing import Any

import pytest

import rank_programs

TRAININGS = ["custom_loop", "fit", "gathered_rows", "dense_rows", "scaled_loss"]


@cache  # those that failed, too
def done(num_ranks: int) -> list[rank_programs.Done]:
    return rank_programs.run("data_parallel_program.py", num_ranks=num_ranks)


def told(num_ranks: int) -> list[Any]:
    return [rank.result for rank in done(num_ranks)]


@pytest.mark.parametrize("training", TRAININGS)
def test_ranks_have_the_same_bits(training: str) -> None:
    rank_0, rank_1 = told(2)
    assert rank_0[training]["weights"]
    assert rank_0[training] == rank_1[training]


@pytest.mark.parametrize("training", TRAININGS)
def test_two_ranks_train_as_one_process_does(training: str) -> None:
    two, one = told(2)[0][training], told(1)[0][training]
    for what in ("losses", "weights"):
        # Means of halves and their mean are rounded otherwise than the mean of the whole.
        expected = pytest.approx([float.fromhex(v) for v in one[what]], abs=1e-6, rel=1e-6)
        assert [float.fromhex(v) for v in two[what]] == expected


def test_an_optimizer_within_a_loss_scale_is_refused() -> None:
    for rank in told(2):
        assert "DistributedOptimizer(keras.optimizers.LossScaleOptimizer(inner))" in rank["refusal"]
