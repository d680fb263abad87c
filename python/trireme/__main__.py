"""`python -m trireme`: the program of this package."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program `trireme`, whose verbs `trireme --help` lists."""
    package = Path(__file__).parent
    beside = [package / "bin" / "trireme", Path(_build_folder()) / "cli" / "trireme"]
    program = next((path for path in beside if path.exists()), None)
    if program is None:
        sys.exit("trireme: the program is not here; install the package, or run `./dev build`")
    os.environ.setdefault("TRIREME_PYTHON", sys.executable)
    os.execv(program, ["trireme", *sys.argv[1:]])


def _build_folder() -> str:
    """Of a package that is used from the folder it was built in: <build>/python/trireme."""
    from trireme import _built

    return str(Path(_built.__file__).parent.parent.parent)


if __name__ == "__main__":
    main()
