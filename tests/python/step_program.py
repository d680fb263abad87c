"""The loop of step_loop.py on several ranks; rank 0 prints what it comes to as JSON.

step_program.py RANKS STAGES FOLDER
"""

import json
import sys

import trireme

trireme.init(ranks=int(sys.argv[1]))

import step_loop  # noqa: E402

found = step_loop.run(int(sys.argv[2]), sys.argv[3])
if trireme.rank() == 0:
    print(json.dumps(found))
