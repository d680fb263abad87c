"""The command `python -m trireme.report`; exit codes: 0 done, 1 failed, 2 misuse."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path


def _fail(text: str, code: int) -> int:
    print(f"trireme: {text}", file=sys.stderr)
    return code


def _say(lines: list[str]) -> int:
    """0, or 1 where what is printed is lost."""
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        sys.stderr.write(f"trireme: standard output was lost: {error.strerror}\n")
        os._exit(1)  # it would be flushed again
    return 0


def _print_any_name() -> None:
    """Names of files and texts of documents may hold what has no UTF-8: print it as `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> int:
    _print_any_name()
    parser = argparse.ArgumentParser(prog="trireme report", description="A page about a run.")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--out", type=Path, help="the page; default: report.html in the folder")
    parser.add_argument("--json", action="store_true", help="say in JSON what was done")
    arguments = parser.parse_args()
    out: Path = arguments.out or arguments.run / "report.html"
    try:
        from trireme.report.page import page
        from trireme.report.run import NotARun, read_run
        from trireme.report.write import write_atomically
    except ModuleNotFoundError as error:
        return _fail(
            f"{sys.executable} has no {error.name}; `./dev build trireme` installs it in .venv, "
            "or set TRIREME_PYTHON to a Python that has what requirements.txt pins",
            1,
        )
    try:
        run = read_run(arguments.run)
    except NotARun as error:
        return _fail(str(error), 2)
    try:
        write_atomically(out, page(run))
    except OSError as error:
        return _fail(f"cannot write {out}: {error.strerror}", 1)
    if arguments.json:
        return _say([json.dumps({"file": str(out), "notes": run.notes.texts})])
    return _say([f"report written to {out}", *(f"  note: {note}" for note in run.notes.texts)])


if __name__ == "__main__":
    sys.exit(main())
