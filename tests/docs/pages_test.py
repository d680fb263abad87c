"""What ./dev docs makes of documents and declarations."""

import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/docs"))

import api  # noqa: E402
import pages  # noqa: E402
import python_api  # noqa: E402


class PagesTest(unittest.TestCase):
    FILES = {
        "README.md": "[one](docs/a.md#x), [all](docs), `[code](b)`\n\n```\n[code](c)\n```\n",
        "docs/a.md": "# A\n\n**Options.**\n1. [home](../README.md)\n2. [code](../src/x.cc)\n",
        "src/x.cc": "int x;\n",
    }

    def test_links_lead_to_pages(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in self.FILES.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            pages.Site(root, root / "pages").add("README.md")
            read = {
                str(file.relative_to(root / "pages")): file.read_text()
                for file in (root / "pages").rglob("*.md")
            }
        self.assertEqual(set(read), {"index.md", "a.md", "source/docs.md", "source/src/x.cc.md"})
        self.assertIn("[one](a.md#x), [all](source/docs.md), `[code](b)`", read["index.md"])
        self.assertIn("[code](c)", read["index.md"])
        self.assertIn("**Options.**\n\n1. [home](index.md)\n2. [code](source/src", read["a.md"])
        self.assertIn("* [a.md](../a.md)", read["source/docs.md"])

    def test_pictures_stay_pictures(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs/concepts").mkdir(parents=True)
            (root / "docs/concepts/a.svg").write_text("<svg/>")
            (root / "README.md").write_text("![one](docs/concepts/a.svg)")
            pages.Site(root, root / "pages").add("README.md")
            self.assertEqual((root / "pages/concepts/a.svg").read_text(), "<svg/>")
            self.assertEqual((root / "pages/index.md").read_text(), "![one](concepts/a.svg)")

    def test_dead_links_stay_for_mkdocs_to_find(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "README.md").write_text("[dead](docs/none.md)")
            pages.Site(Path(folder), Path(folder) / "pages").add("README.md")
            self.assertIn("docs/none.md", (Path(folder) / "pages/index.md").read_text())


class ApiTest(unittest.TestCase):
    def test_code_is_spaced_as_ours(self) -> None:
        self.assertEqual(api.spaced("const std::vector< T > & x=1"), "const std::vector<T>& x = 1")
        self.assertEqual(
            api.spaced("bool operator== (const F &) const =default"),
            "bool operator== (const F&) const = default",
        )
        self.assertEqual(api.spaced("using A = typedef B"), "using A = B")

    def test_long_declarations_break_at_outer_commas(self) -> None:
        self.assertEqual(api.broken("f(A<B, C> a, D d);"), "f(\n    A<B, C> a,\n    D d);")

    def test_comments_are_markdown(self) -> None:
        xml = (
            "<m><detaileddescription><para>A <computeroutput>b*</computeroutput> * c."
            "<itemizedlist><listitem><para><bold>Errors</bold> kIo.</para></listitem>"
            "</itemizedlist></para></detaileddescription></m>"
        )
        said = api.Docs([]).of(ElementTree.fromstring(xml))
        self.assertEqual(said, "A `b*` \\* c.\n\n* **Errors** kIo.")

    def test_unknown_comments_fail(self) -> None:
        xml = "<m><detaileddescription><para><table/></para></detaileddescription></m>"
        with self.assertRaisesRegex(ValueError, "<table>"):
            api.Docs([]).of(ElementTree.fromstring(xml))

    def test_headers_begin_with_what_they_are(self) -> None:
        self.assertEqual(api.introduction("#pragma once\n\n/* A\n * b. */\n"), "A\nb.")
        self.assertEqual(api.introduction("#pragma once\n\n// A.\n#include <x>\n"), "A.")
        self.assertEqual(api.introduction("#pragma once\n\n#include <x>\n"), "")


class PythonApiTest(unittest.TestCase):
    FILES = {
        "__init__.pyi": "from trireme.work import Worker as Worker\nfrom trireme._core import Plan as Plan\n",
        "work.py": 'class Worker:\n    """Works."""\n\n    def __init__(self, days: int = 5) -> None: pass\n\n'
        '    def rest(self) -> None:\n        """Sleeps."""\n\n    def _hidden(self) -> None: pass\n',
        "_core.pyi": "class Plan:\n    path: str\n    def show(self) -> str: ...\n"
        '    @property\n    def stages(self) -> int:\n        """How many."""\n',
        "tools.py": 'from trireme.work import Worker\n\n__all__ = ["Worker", "saw"]\n\n\n'
        'def saw(length: float) -> None:\n    """Saws."""\n',
    }

    def test_names_come_with_signature_and_docstring(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.FILES.items():
                (Path(folder) / name).write_text(text)
            page = python_api.page(Path(folder), modules=("tools",))
        self.assertIn("### trireme.Worker\n\n```python\nclass Worker(days: int=5)\n```", page)
        self.assertIn("#### trireme.Worker.rest", page)
        self.assertNotIn("_hidden", page)
        self.assertIn("### trireme.Plan\n\n```python\nclass Plan:\n    path: str", page)
        self.assertIn("    @property\n    def stages(self) -> int:", page)
        self.assertIn("### trireme.tools.Worker", page)
        self.assertIn("### trireme.tools.saw\n\n```python\ndef saw(length: float)", page)


if __name__ == "__main__":
    unittest.main()
