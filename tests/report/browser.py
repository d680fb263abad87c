"""A browser without a window, for tests that open a page."""

from __future__ import annotations

import shutil
from pathlib import Path

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


def browser_command(browser: str, folder: Path, address: str, *options: str) -> list[str]:
    """What prints the page as it is once its scripts have run. `folder` is for the browser's own files."""
    return [
        browser,
        "--headless",
        "--no-sandbox",  # root has none; the page is our own
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={folder}/profile",
        "--enable-logging=stderr",
        "--window-size=1280,900",
        "--virtual-time-budget=20000",
        *options,
        "--dump-dom",
        address,
    ]
