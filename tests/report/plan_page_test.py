"""The page of `trireme plan --serve` in a browser: controls are moved, and it shows what the program plans for them.

    python plan_page_test.py

Exit code 77, which ctest counts as skipped, where there is no browser.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path
from typing import Any

from browser import browser_command, find_browser

PROGRAM = os.environ["TRIREME_PROGRAM"]
SKIPPED = 77
GIB = 2**30

# Holds the page in a frame, moves its controls one after the other, and notes what it shows.
DRIVER = """<!doctype html><iframe id="frame" src="/" width="1200" height="900"></iframe><pre id="seen"></pre><script>
const moves = [["hosts", 6], ["microbatch", 1], ["memory_gib", 16], ["model", "llama3-405b"]];
const page = () => document.getElementById("frame").contentDocument;
const rest = () => new Promise((done) => setTimeout(done, 50));
async function settled() {
  for (let i = 0; i < 200; ++i) {
    await rest();
    const problem = page()?.getElementById("problem")?.textContent;
    if (problem) return {problem};
    const plan = page()?.getElementById("plan");
    if (plan && plan.querySelector("#figures b") && !plan.classList.contains("is-old")) {
      return {
        figures: [...plan.querySelectorAll("#figures b")].map((one) => one.textContent),
        actions: plan.querySelectorAll(".action").length,
        front: plan.querySelectorAll("#front .layout").length,
        rows: plan.querySelectorAll("#best tbody tr").length,
        link: document.getElementById("frame").contentWindow.location.hash,
      };
    }
  }
  return {problem: "the page did not settle"};
}
async function drive() {
  const seen = [await settled()];
  for (const [name, value] of moves) {
    const control = page().getElementById(name);
    control.value = value;
    control.dispatchEvent(new Event("input", {bubbles: true}));
    seen.push(await settled());
  }
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
drive();
</script>"""


def planned(*options: str) -> dict[str, Any]:
    command = [PROGRAM, "plan", "--topology", "p4d", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Driver(http.server.BaseHTTPRequestHandler):
    """The driver's page, and all else from the program: so both have one origin."""

    address = ""

    def do_GET(self) -> None:
        status, kind, body = 200, "text/html", DRIVER.encode()
        if self.path != "/drive":
            try:
                with urllib.request.urlopen(self.address + self.path[1:], timeout=60) as answer:
                    kind, body = answer.headers["Content-Type"], answer.read()
            except urllib.error.HTTPError as error:
                status, kind, body = error.code, error.headers["Content-Type"], error.read()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class PlanPageTest(unittest.TestCase):
    """One page, opened and moved once."""

    browser: str
    address: str
    seen: list[dict[str, Any]]
    console: list[str]

    @classmethod
    def setUpClass(cls) -> None:
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        served = subprocess.Popen(
            [PROGRAM, "plan", "t5-3b", "--hosts", "256", "--serve", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        cls.addClassCleanup(served.wait)
        cls.addClassCleanup(served.terminate)
        assert served.stdout
        cls.addClassCleanup(served.stdout.close)
        lines = ""
        while "}" not in lines:
            lines += served.stdout.readline()
        cls.address = Driver.address = json.loads(lines)["address"]
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Driver)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        cls.addClassCleanup(proxy.server_close)
        cls.addClassCleanup(proxy.shutdown)
        address = f"http://127.0.0.1:{proxy.server_port}/drive"
        command = browser_command(cls.browser, Path(temporary.name), address)
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
        noted = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, flags=re.S)
        assert noted, done.stdout
        cls.seen = json.loads(unescape(noted.group(1)) or "[]")
        cls.console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    def expect_shown(self, seen: dict[str, Any], found: dict[str, Any]) -> None:
        best = found["best"][0]
        self.assertNotIn("problem", seen)
        self.assertEqual(seen["figures"][1], f"{best['samples_per_s']:.1f}")
        self.assertEqual(seen["figures"][2], f"{sum(best['bytes'].values()) / GIB:.1f} GiB")
        self.assertEqual(seen["front"], len(found["front"]))
        self.assertEqual(seen["rows"], len(found["best"]))
        layout = best["layout"]
        num_microbatches = layout["global_batch"] // (layout["data"] * layout["microbatch"])
        stages = layout["pipeline"] * layout["stages_per_rank"]
        self.assertEqual(seen["actions"], 2 * stages * num_microbatches)

    def test_it_shows_what_the_program_plans(self) -> None:
        self.assertEqual(len(self.seen), 5)
        self.expect_shown(self.seen[0], planned("t5-3b", "--hosts", "256"))

    def test_moved_controls_plan_anew(self) -> None:
        options = ["t5-3b", "--hosts", "64"]
        self.expect_shown(self.seen[1], planned(*options))
        options += ["--microbatch", "2"]
        self.expect_shown(self.seen[2], planned(*options))
        options += ["--device-memory", "16GiB"]
        self.expect_shown(self.seen[3], planned(*options))
        self.assertIn("hosts=64", self.seen[3]["link"])

    def test_what_does_not_fit_is_said(self) -> None:
        self.assertIn("does not fit", self.seen[4]["problem"])

    def test_no_script_fails(self) -> None:
        unexpected = [line for line in self.console if "400 (Bad Request)" not in line]
        self.assertEqual(unexpected, [])

    def test_bad_values_and_other_hosts_are_refused(self) -> None:
        for query in ("hosts=many", "hosts=-1", "colour=red", "topology=none", "batch=99999999"):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"{self.address}plan?{query}", timeout=60)
            self.assertEqual(caught.exception.code, 400)
            self.assertIn("error", json.loads(caught.exception.read()))
        request = urllib.request.Request(self.address, headers={"Host": "example.org"})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=60)
        self.assertEqual(caught.exception.code, 403)


if __name__ == "__main__":
    browser = find_browser()
    if browser is None:
        print(
            "skipped: no browser; expected one of chromium-headless-shell, chromium, google-chrome"
        )
        sys.exit(SKIPPED)
    PlanPageTest.browser = browser
    unittest.main()
