"""Ranks that end in the middle of a training."""

import json
from typing import Any

import programs


def told(how: str) -> tuple[float, dict[str, Any], str]:
    """When rank 1 ended, what rank 0 caught, and all that was said."""
    done = programs.run("lost_ranks_program.py", how)
    assert done.returncode != 0
    lines = done.stdout.strip().splitlines()
    ended = next(float(line) for line in lines if not line.startswith("{"))
    return ended, next(json.loads(line) for line in lines if line.startswith("{")), done.stderr


def test_a_killed_rank_is_an_exception_on_the_others_at_once() -> None:
    ended, caught, said = told("killed")
    assert caught["at"] - ended < 2.0
    assert caught["kind"] == "peer lost"
    assert caught["peer"] == 1 or caught["rank"] == 1
    assert "step" in caught["text"]
    assert "lost_ranks_program.py" in said  # the line that called it


def test_an_exception_of_one_rank_is_told_to_the_others() -> None:
    ended, caught, said = told("raises")
    assert caught["at"] - ended < 2.0
    assert "RuntimeError: the disk is full" in caught["text"]
    assert "lost_ranks_program.py:" in caught["text"]
    assert caught["rank"] == 1
    assert said.count("the disk is full") >= 1
