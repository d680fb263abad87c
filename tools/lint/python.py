"""Python: form, rules and types, as pyproject.toml says."""

import subprocess
from pathlib import Path

from source import Finding, repository_files

COMMANDS = (
    ("ruff", "format", "--diff", "--quiet"),
    ("ruff", "check", "--quiet", "--output-format=concise"),
    ("mypy", "--no-error-summary"),
)


def check(root: Path) -> list[Finding]:
    paths = [path for path in repository_files(root) if path.endswith(".py")]
    findings = []
    for program, *words in COMMANDS:
        command = [str(root / ".venv/bin" / program), *words, *paths]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().replace("\n", "\n    ")
            findings.append(Finding("pyproject.toml", 0, f"{program} {words[0]}:\n    {said}"))
    return findings
