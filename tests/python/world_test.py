"""The ranks of a run, from Python."""

import trireme


def test_a_process_alone_is_a_world_of_one() -> None:
    world = trireme.World()
    assert (world.rank, world.size) == (0, 1)
