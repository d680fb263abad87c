"""Runs every rule: `./dev lint [--full]`. Exit code 1 where one is broken."""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import compiled
import links
import lists
import names
import python
import quotes
import rooms
import sizes
from source import Finding, changed_files, repository_files

FORMATTED = (".h", ".cc", ".cu", ".cuh")


def check_format(root: Path) -> list[Finding]:
    paths = [path for path in repository_files(root) if path.endswith(FORMATTED)]
    if not paths:
        return []
    command = [str(root / ".venv/bin/clang-format"), "--dry-run", "-Werror", *paths]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    bad = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
    if done.returncode != 0 and not bad:
        return [Finding(".clang-format", 0, done.stderr.strip())]
    return [Finding(path, 0, "not formatted; run ./dev format") for path in bad]


def report(name: str, rule: Callable[[], list[Finding]], note: str = "") -> bool:
    """Runs one rule, prints what it found. Whether it found nothing."""
    start = time.monotonic()
    findings = rule()
    seconds = time.monotonic() - start
    result = "ok" if not findings else f"{len(findings)} found"
    print(f"lint {name}: {result}, {seconds:.1f} s{note}", flush=True)
    for finding in findings:
        print(f"  {finding}")
    return not findings


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks what CONTRIBUTING.md promises.")
    parser.add_argument("--full", action="store_true", help="every file, those with torch too")
    parser.add_argument("--build", type=Path, required=True, help="a configured build folder")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parents[2]

    good = report("format", partial(check_format, root))
    for rule in (rooms, lists, names, sizes, links, quotes, python):
        good &= report(rule.__name__, partial(rule.check, root))

    paths, since = changed_files(root)
    if arguments.full:
        paths, since = repository_files(root), "all files"
    sources = compiled.Sources(root)
    paths = [path for path in paths if path.endswith((".h", ".cc"))]
    if not arguments.full:
        paths = [path for path in paths if not sources.needs_torch(path)]
        since += ", without torch"
    for name, make in (("headers alone", compiled.header_jobs), ("tidy", compiled.tidy_jobs)):
        jobs = make(sources, paths, arguments.build)
        note = f" ({len(jobs)} files, {since})"
        good &= report(name, partial(compiled.run_jobs, root, jobs), note)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
