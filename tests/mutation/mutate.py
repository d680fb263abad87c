"""Puts known faults into the sources, one at a time, and expects the default tests to fail.

    ./dev mutate                  all of faults.toml, in a copy of the last commit
    ./dev mutate NAME ...         those whose name contains one of these
    ./dev mutate --here NAME ...  in this tree and its build folder, where the files have no changes

Each fault names the one test program that is built and run. A fault that is not noticed is a hole
in the tests: the exit code is 1.
"""

import argparse
import os
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Fault:
    """A row of the table."""

    name: str
    file: str
    find: str
    replace: str
    breaks: str
    target: str
    filter: str


def read_table(path: Path) -> list[Fault]:
    """The faults of a table; a KeyError or TypeError names what a row lacks or has too much."""
    return [Fault(**row) for row in tomllib.loads(path.read_text())["fault"]]


def problems(faults: list[Fault], tree: Path) -> list[str]:
    """What is wrong with a table for the sources of `tree`."""
    found = []
    for fault in faults:
        source = tree / fault.file
        times = source.read_text().count(fault.find) if source.is_file() else 0
        if times != 1:
            found.append(f"{fault.name}: `{fault.find}` stands {times} times in {fault.file}")
    if len({fault.name for fault in faults}) < len(faults):
        found.append("two faults have the same name")
    return found


def make_copy() -> Path:
    """A working tree of the last commit with a build folder of its own, kept between runs."""
    tree = ROOT / "build" / "mutation"
    if tree.exists():
        subprocess.run(["git", "checkout", "--force", "--detach", head()], cwd=tree, check=True)
    else:
        command = ["git", "worktree", "add", "--detach", str(tree), head()]
        subprocess.run(command, cwd=ROOT, check=True)
    if not (tree / ".venv").exists():
        (tree / ".venv").symlink_to(ROOT / ".venv")
    return tree


def head() -> str:
    """The last commit of this tree."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def is_changed(tree: Path, file: str) -> bool:
    """Whether the file differs from the last commit."""
    return subprocess.run(["git", "diff", "--quiet", "HEAD", "--", file], cwd=tree).returncode != 0


def program_of(tree: Path, target: str) -> Path:
    """Where the build puts a test program."""
    preset = os.environ.get("TRIREME_PRESET", "dev")
    found = list((tree / "build" / preset / "tests").rglob(target))
    if len(found) != 1:
        sys.exit(f"mutate: {len(found)} programs are called {target}")
    return found[0]


def try_fault(fault: Fault, tree: Path) -> str:
    """`caught`, `SURVIVED` or `DOES NOT COMPILE`; the file is as before when it returns."""
    source = tree / fault.file
    original = source.read_text()
    try:
        source.write_text(original.replace(fault.find, fault.replace))
        build = subprocess.run(
            ["./dev", "build", fault.target], cwd=tree, capture_output=True, text=True
        )
        if build.returncode != 0:
            print(build.stdout[-2000:], file=sys.stderr)
            return "DOES NOT COMPILE"
        command = [str(program_of(tree, fault.target)), f"--gtest_filter={fault.filter}"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            run = subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, text=True, timeout=600
            )
        except subprocess.TimeoutExpired:
            return "caught"  # it hangs, which the default tests do not
        if "[==========] 0 tests" in run.stdout or "Running 0 tests" in run.stdout:
            return "NO TEST RAN"
        return "SURVIVED" if run.returncode == 0 else "caught"
    finally:
        source.write_text(original)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--here", action="store_true", help="in this tree instead of a copy")
    parser.add_argument(
        "--check", action="store_true", help="only whether the table fits the sources"
    )
    options = parser.parse_args()
    faults = read_table(ROOT / "tests" / "mutation" / "faults.toml")
    wrong = problems(faults, ROOT)
    for line in wrong:
        print(f"mutate: {line}", file=sys.stderr)
    if wrong or options.check:
        return 1 if wrong else 0
    if options.names:
        faults = [f for f in faults if any(name in f.name for name in options.names)]
    changed = [f.file for f in faults if is_changed(ROOT, f.file)]
    if options.here and changed:
        sys.exit(f"mutate: {changed[0]} has changes; commit them first, or leave --here out")
    tree = ROOT if options.here else make_copy()
    verdicts = {}
    for fault in faults:
        begin = time.monotonic()
        verdicts[fault.name] = try_fault(fault, tree)
        seconds = time.monotonic() - begin
        print(
            f"{verdicts[fault.name]:17} {fault.name:40} {seconds:5.0f} s  {fault.breaks}",
            flush=True,
        )
    caught = sum(verdict == "caught" for verdict in verdicts.values())
    print(f"{caught} of {len(verdicts)} faults are caught")
    return 0 if caught == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
