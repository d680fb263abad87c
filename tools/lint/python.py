"""Python: form, rules and types, as pyproject.toml says."""

import subprocess
from pathlib import Path

from source import Finding, repository_files

COMMANDS = (
    ("ruff", "format", "--diff", "--quiet"),
    ("ruff", "check", "--quiet", "--output-format=concise"),
    ("mypy", "--no-error-summary"),
)


def check(root: Path, programs: Path | None = None) -> list[Finding]:
    """`programs`: folder that holds ruff and mypy; default: in .venv."""
    programs = programs or root / ".venv/bin"
    paths = [path for path in repository_files(root) if path.endswith(".py")]
    findings: list[Finding] = []
    if not paths:
        return findings
    for program, *words in COMMANDS:
        command = [str(programs / program), *words, *paths]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            name = " ".join([program, *(word for word in words if not word.startswith("-"))])
            said = (done.stdout + done.stderr).strip().replace("\n", "\n    ")
            findings.append(Finding("pyproject.toml", 0, f"{name}:\n    {said}"))
    return findings
