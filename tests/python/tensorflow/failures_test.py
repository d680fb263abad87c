"""What a rank is told when another one fails or asks for something else."""

from typing import Any

import pytest

import rank_programs


def told(how: str) -> list[Any]:
    """By rank, what the first call caught and what the second did."""
    return [done.result for done in rank_programs.run("failures_program.py", how)]


def test_ranks_that_differ_in_shape_are_both_named() -> None:
    for first, second in told("shape"):
        assert first["kind"] == "InvalidArgumentError"
        assert (
            "all_reduce w: rank 0 has f32 [2, 3] as tensor 1, rank 1 has f32 [3, 2]"
            in first["text"]
        )
        assert "rank 0 has f32 [2, 3]" in second["text"]  # the first error stays


def test_ranks_that_differ_in_operation_are_both_named() -> None:
    for first, _ in told("operation"):
        assert first["kind"] == "InvalidArgumentError"
        assert "rank 0 has broadcast of 1 tensors, rank 1 has all_reduce" in first["text"]


@pytest.mark.parametrize("how", ["killed", "graph_killed"])
def test_a_killed_rank_is_an_exception_on_the_other_at_once(how: str) -> None:
    rank_0, rank_1 = rank_programs.run("failures_program.py", how)
    assert rank_1.code == -9
    ended = float(rank_1.said.strip().splitlines()[-1])
    first, second = rank_0.result
    assert first["at"] - ended < 2.0
    assert first["kind"] == second["kind"] == "AbortedError"
    assert "all_reduce w" in first["text"]
    assert "peer lost: rank 1" in first["text"]


def test_an_exception_that_ends_a_rank_is_told_to_the_other() -> None:
    rank_0, rank_1 = rank_programs.run("failures_program.py", "raises")
    assert rank_1.code == 1
    first, _ = rank_0.result
    assert first["kind"] == "AbortedError"
    assert "RuntimeError: the disk is full" in first["text"]
    assert "failures_program.py:" in first["text"]
