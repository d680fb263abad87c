"""run_pytest.py PYTHON UNIT: runs UNIT_test.py by a Python that has TensorFlow. Exit code 77: it is not installed."""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    python, unit = sys.argv[1:]
    found = Path(python).exists() and subprocess.run(
        [python, "-c", "import importlib.metadata as m; m.version('tensorflow-cpu')"],
        check=False,
        capture_output=True,
    )
    if not found or found.returncode != 0:
        print(f"[  SKIPPED ] tensorflow/{unit}: TensorFlow is not installed in {python}")
        return 77
    file = str(Path(__file__).parent / f"{unit}_test.py")
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", file]
    return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
