"""Ours and a peer's measurements, one after the other."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_turn(rounds: int, ours: Callable[[], T], peer: Callable[[], T]) -> list[tuple[T, T]]:
    """What both return, ours first, in each round after one that does not count; each begins every other round."""
    pairs = []
    for round_index in range(-1, rounds):
        if round_index % 2 == 0:
            mine, other = ours(), peer()
        else:
            other, mine = peer(), ours()
        if round_index >= 0:
            pairs.append((mine, other))
    return pairs
