"""The page in a browser without a network: figures are drawn, no script fails, nothing is loaded.

    python browser_test.py

Exit code 77, which ctest counts as skipped, where there is no browser.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

from browser import browser_command, find_browser
from sample_run import write_run
from trireme.report.fields import Notes
from trireme.report.figures.timeline import rows_of
from trireme.report.page import page
from trireme.report.run import Run, read_run
from trireme.report.validation import Errors, JudgedGroup, JudgedRun, Validation
from trireme.report.validation_page import validation_page

SKIPPED = 77


class Drawn(HTMLParser):
    """Counts what each figure of a page shows: elements by class, and the texts of each class."""

    def __init__(self) -> None:
        super().__init__()
        self.figures: dict[str, dict[str, int]] = {}
        self.texts: dict[str, list[str]] = {}
        self._figure = ""
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        if tag == "figure":
            self._figure = attributes.get("id") or "unnamed"
            self.figures[self._figure] = {}
            self.texts[self._figure] = []
        if not self._figure:
            return
        counts = self.figures[self._figure]
        for one in classes:
            counts[one] = counts.get(one, 0) + 1
        if tag == "path" and attributes.get("d"):
            counts["path with data"] = counts.get("path with data", 0) + 1
        self._text = tag if tag == "text" else ""

    def handle_endtag(self, tag: str) -> None:
        self._text = ""
        if tag == "figure":
            self._figure = ""

    def handle_data(self, data: str) -> None:
        if self._text and self._figure:
            self.texts[self._figure].append(data)


def opened(browser: str, folder: Path, file: Path) -> tuple[Drawn, list[str], list[str]]:
    """What the browser draws of the page, what its scripts complain of, and what it would load."""
    command = browser_command(
        browser,
        folder,
        file.as_uri(),
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--log-net-log={folder}/net.json",
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    drawn = Drawn()
    drawn.feed(re.sub(r"<script\b.*?</script>", "", done.stdout, flags=re.S))
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    net = (folder / "net.json").read_text(encoding="utf-8")
    return drawn, console, re.findall(r'"url":"((?:https?|wss?|ftp):[^"]*)"', net)


class BrowserTest(unittest.TestCase):
    """One page, opened once."""

    browser: str
    run_of_page: Run
    drawn: Drawn
    console: list[str]
    requests: list[str]

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        folder = Path(temporary.name)
        write_run(folder / "run")
        cls.run_of_page = read_run(folder / "run")
        (folder / "report.html").write_text(page(cls.run_of_page), encoding="utf-8")
        cls.drawn, cls.console, cls.requests = opened(cls.browser, folder, folder / "report.html")

    def test_no_script_fails(self) -> None:
        self.assertEqual(self.console, [])

    def test_nothing_is_loaded(self) -> None:
        self.assertEqual(self.requests, [])

    def test_every_figure_is_drawn(self) -> None:
        names = {"loss", "learning-rate", "gradient-norm", "step-time", "throughput", "reading"}
        names |= {"timeline-0", "timeline-2", "memory-0", "memory-1", "memory-2"}
        self.assertEqual(set(self.drawn.figures), {f"figure-{name}" for name in names})
        for name, counts in self.drawn.figures.items():
            with self.subTest(figure=name):
                self.assertGreater(counts.get("main-svg", 0), 0)
                self.assertGreater(counts.get("trace", 0), 0)
                self.assertGreater(counts.get("path with data", 0), 0)

    def test_lines_and_markers_are_there(self) -> None:
        self.assertEqual(self.drawn.figures["figure-loss"]["scatter"], 2 + 1)
        self.assertEqual(self.drawn.figures["figure-step-time"]["scatter"], 2 + 2 + 3)

    def test_timelines_have_a_row_for_each_rank_and_a_bar_for_each_event(self) -> None:
        for segment in self.run_of_page.segments:
            if not segment.timelines:
                continue
            name = f"figure-timeline-{segment.index}"
            texts = self.drawn.texts[name]
            for row in rows_of(segment.timelines):
                self.assertEqual(texts.count(row), len(segment.timelines), row)
            num_events = sum(len(timeline.events) for timeline in segment.timelines)
            self.assertEqual(self.drawn.figures[name]["point"], num_events)

    def test_memory_has_a_bar_for_each_kind_and_rank(self) -> None:
        counts = self.drawn.figures["figure-memory-0"]
        self.assertEqual(counts["point"], 4 * 4 + 4)  # and a marker for each rank

    def test_published_runs_are_drawn(self) -> None:
        errors = Errors(0.1, 0.1, 0.1, 0.1, None)
        runs = [JudgedRun(row, "gpt", row, 1.1 * row, row, 2**30, 2**29) for row in (2, 3)]
        groups = [JudgedGroup(name, errors, errors, errors, runs) for name in ("a", "b")]
        validation = Validation(5, groups, JudgedGroup("all", errors, errors, errors, runs + runs))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "judged.html")
            file.write_text(validation_page(validation, Notes()), encoding="utf-8")
            drawn, console, _ = opened(self.browser, Path(folder), file)
        self.assertEqual(console, [])
        self.assertEqual(drawn.figures["figure-steps"]["scatter"], 1 + 2)
        self.assertEqual(drawn.figures["figure-errors"]["boxes"], 2)
        self.assertEqual(drawn.figures["figure-peaks"]["point"], 2 * 2)

    def test_a_failing_script_would_be_seen(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            bad = Path(folder) / "bad.html"
            bad.write_text("<script>nothing.here()</script>")
            command = [self.browser, "--headless", "--no-sandbox", "--enable-logging=stderr"]
            command += [f"--user-data-dir={folder}/profile", "--dump-dom", bad.as_uri()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
            self.assertIn("CONSOLE", done.stderr)


if __name__ == "__main__":
    found = find_browser()
    if found is None:
        print("skipped: no browser; on Debian: apt-get install chromium-headless-shell")
        sys.exit(SKIPPED)
    BrowserTest.browser = found
    unittest.main()
