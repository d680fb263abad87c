"""The table of keys of trireme.init."""

import re
from typing import Any

import pytest

from trireme.config import Config, ConfigError, known_keys, parse


def test_keys_that_work() -> None:
    table: dict[str, Any] = {
        "pipeline_parallel_degree": 4,
        "microbatches": 8,
        "pipeline": "simple",
        "optimize": "memory",
        "memory_weight": 0.8,
        "placement_strategy": "spread",
        "active_microbatches": 8,
        "ddp": True,
        "auto_partition": False,
        "default_partition": 1,
        "offload_activations": True,
    }
    assert parse(table) == Config(
        stages=4,
        microbatches=8,
        schedule="simple",
        active_microbatches=8,
        objective="memory",
        placement="spread",
        auto_partition=False,
        default_partition=1,
        offload="all",
    )


@pytest.mark.parametrize("letters", ["DPT", "DTP", "TDP", "PDT", "PTD", "TPD"])
def test_the_letter_that_varies_fastest_is_on_the_right(letters: str) -> None:
    expected = "cluster" if letters.index("D") < letters.index("P") else "spread"
    assert parse({"placement_strategy": letters}).placement == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"pipeline_parallel_degre": 2}, "no key is called 'pipeline_parallel_degre'; there are"),
        ({"microbatches": 0}, "microbatches is a whole number of 1 or more, and is 0"),
        ({"pipeline": "_only_forward"}, "pipeline is one of simple, interleaved"),
        ({"partitions": 2, "pipeline_parallel_degree": 2}, "says again"),
        ({"tensor_parallel_degree": 2}, "not available: .*use pipeline_parallel_degree"),
        ({"fp16": True}, "take bf16"),
        ({"ddp_port": 1234}, "would have no effect: .*MASTER_PORT"),
        (
            {"pipeline": "simple", "microbatches": 8, "active_microbatches": 2},
            "less than the 8 .*take pipeline='interleaved'",
        ),
        ({"memory_weight": 0.9}, "say optimize='memory'"),
        ({"default_partition": 1}, "none of the 1 partitions"),
        ({"load_partition": True}, "needs partition_file"),
    ],
)
def test_keys_that_are_refused_say_why(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(table)


def test_every_key_has_an_answer() -> None:
    for key in known_keys():
        try:
            parse({key: object()})
        except ConfigError as refused:
            assert re.search(key, str(refused))
