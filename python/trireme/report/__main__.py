"""The command `python -m trireme.report`; exit codes: 0 done, 1 failed, 2 misuse."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
from pathlib import Path

from trireme.export import command
from trireme.export.writer import ExportError
from trireme.report.documents import NoDocument
from trireme.report.fields import Notes
from trireme.report.run import NotARun, read_run
from trireme.report.write import write_atomically


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
    parser = argparse.ArgumentParser(
        prog="trireme report",
        description="A run, or what `trireme validate --json` printed, as a page; or a run's metrics for other tools.",
    )
    parser.add_argument("run", type=Path, help="folder of the run, or file of `validate --json`")
    parser.add_argument(
        "--out",
        type=Path,
        help="the page; default: report.html in the folder, FILE.html beside FILE.json",
    )
    parser.add_argument("--json", action="store_true", help="say in JSON what was done")
    command.add_options(parser)
    arguments = parser.parse_args()
    misuse = command.misuse(arguments)
    if misuse:
        parser.error(misuse)
    if command.are_asked_for(arguments):
        if arguments.out:
            parser.error(
                "--out is the page, which is made without --tensorboard, --mlflow, --mlperf"
            )
        return _export(arguments)
    return _page(arguments)


def _export(arguments: argparse.Namespace) -> int:
    notes = Notes()
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what libraries print
            writers = command.make_writers(arguments)
            written = command.export(arguments.run, writers, arguments.follow, notes)
    except NotARun as error:
        return _fail(str(error), 2)
    except (ExportError, OSError) as error:
        return _fail(str(error), 1)
    if arguments.json:
        return _say([json.dumps({"written": written, "notes": notes.texts})])
    return _say([*written, *(f"  note: {note}" for note in notes.texts)])


def _make(path: Path, notes: Notes) -> tuple[str, Path]:
    """The page about a run's folder or a file of `validate --json`, and where it goes by default."""
    from trireme.report.page import page
    from trireme.report.validation import read_validation
    from trireme.report.validation_page import validation_page

    if path.is_file():
        return validation_page(read_validation(path, notes), notes), path.with_suffix(".html")
    run = read_run(path)
    notes.texts.extend(run.notes.texts)
    return page(run), path / "report.html"


def _page(arguments: argparse.Namespace) -> int:
    notes = Notes()
    try:
        text, out = _make(arguments.run, notes)
    except ModuleNotFoundError as error:
        return _fail(
            f"{sys.executable} has no {error.name}; `./dev build trireme` installs it in .venv, "
            "or set TRIREME_PYTHON to a Python that has what requirements.txt pins",
            1,
        )
    except (NotARun, NoDocument) as error:
        return _fail(str(error), 2)
    out = arguments.out or out
    try:
        write_atomically(out, text)
    except OSError as error:
        return _fail(f"cannot write {out}: {error.strerror}", 1)
    if arguments.json:
        return _say([json.dumps({"file": str(out), "notes": notes.texts})])
    return _say([f"report written to {out}", *(f"  note: {note}" for note in notes.texts)])


if __name__ == "__main__":
    sys.exit(main())
