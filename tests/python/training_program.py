"""Trains models of models.py on several ranks; rank 0 prints losses and a digest of the weights of each as JSON.

training_program.py RANKS RUNS    RUNS: JSON, [[model, {option: value}], ..]
"""

import json
import sys
from typing import Any

import trireme


def main() -> None:
    trireme.init(ranks=int(sys.argv[1]))
    import training

    found: list[Any] = [
        training.train(name, **options) for name, options in json.loads(sys.argv[2])
    ]
    if trireme.init().rank == 0:
        print(json.dumps(found))


main()
