"""Large models, and those of Hugging Face, on ranks: every process imports their library, which takes longer than the
training."""

import json

import pytest

import models
import programs
from training import train


@pytest.mark.parametrize("name", (*models.HUGGING_FACE, "bert_padded", models.LARGE))
def test_ranks_have_the_bits_of_one_process(name: str) -> None:
    alone = train(name)
    two = json.dumps([[name, {"stages": 2, "replicas": 1}], [name, {"plan": "auto"}]])
    assert programs.result_of("training_program.py", "2", two) == [alone, alone]
    four = json.dumps([[name, {"stages": 2, "replicas": 2}], [name, {"stages": 4, "replicas": 1}]])
    assert programs.result_of("training_program.py", "4", four) == [alone, alone]
