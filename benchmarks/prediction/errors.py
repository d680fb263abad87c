"""How far the predicted step times of runs are from the measured ones: errors.py RUN_FOLDER.."""

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path


def errors_percent(folder: str) -> tuple[float, float]:
    """Prints a run; its errors: of the predicted step time, and that at the speed of its steps."""
    run = json.loads((Path(folder) / "run.json").read_text())["segments"][0]
    predicted, measured = float(run["predicted_step_ms"]), float(run["median_step_ms"])
    speed = float(run["compute_over_profile"])
    error = 100 * (predicted / measured - 1)
    at_speed = 100 * (speed * predicted / measured - 1)
    print(
        f"{run['ranks']} ranks: predicted {predicted:.1f} ms, measured {measured:.1f} ms: "
        f"{error:+.1f} %; at the speed of these steps {at_speed:+.1f} %"
    )
    return error, at_speed


def medians(errors: Sequence[float]) -> str:
    return f"{statistics.median(map(abs, errors)):.1f} % ({statistics.median(errors):+.1f} %)"


def main() -> None:
    errors, at_speed = zip(*map(errors_percent, sys.argv[1:]), strict=True)
    print(
        f"{len(errors)} runs: median error (with its sign) {medians(errors)}, "
        f"at the speed of the steps {medians(at_speed)}"
    )


main()
