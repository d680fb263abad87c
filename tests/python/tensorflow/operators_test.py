"""allreduce, allgather and broadcast of two ranks."""

from functools import cache
from typing import Any

import rank_programs


@cache
def told() -> list[Any]:
    return [done.result for done in rank_programs.run("operators_program.py")]


def test_ranks_know_their_places() -> None:
    assert [rank["place"] for rank in told()] == [[0, 2, 0], [1, 2, 1]]


def test_reductions_of_every_dtype() -> None:
    for rank in told():
        average = rank["reductions"].pop("average")
        assert average == [[1.5], [6.0]]
        for dtype, results in rank["reductions"].items():
            expected = [[3, 6, 9], [1, 2, 3], [2, 4, 6], [2, 8, 18]]
            assert results == expected, dtype


def test_tensors_larger_than_the_buffer() -> None:
    assert all(rank["large"] == [3.0, 3.0, 3.0, 2.0, 2.0] for rank in told())


def test_gathered_rows_stand_in_the_order_of_ranks() -> None:
    some = [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    assert all(rank["gathered"] == [some, [[1]]] for rank in told())


def test_broadcasts_of_any_dtype_and_of_variables() -> None:
    values = [[6.0], [6], [6], [True, False], []]
    assert all(rank["sent"] == [*values, [1.0, 1.0, 1.0], 1, 1] for rank in told())


def test_operators_of_a_graph_keep_their_order() -> None:
    assert all(rank["in_a_graph"] == [135.0, 270.0] for rank in told())


def test_gradients_of_collectives() -> None:
    # allreduce: 2 ranks * 2x; allgather: the sum of this rank's factors over both; broadcast: 2, of the root alone.
    assert [rank["differentiated"] for rank in told()] == [[4 + 2 + 2, 8 + 4 + 2], [4 + 6, 8 + 8]]


def test_what_is_refused_says_why() -> None:
    for rank in told():
        average, dtype, text, root, compiled, shapes, scalar = rank["refused"]
        assert "Average is of floating-point types, not int32" in average
        assert "no reduction of string" in dtype
        assert "string has no fixed size" in text
        assert "root_rank=2, and there are ranks 0 to 1" in root
        assert "jit_compile=False" in compiled
        assert "rank 0 has f32 [2, 2], rank 1 has f32 [2, 3]" in shapes
        assert "1 to 8 dimensions" in scalar
