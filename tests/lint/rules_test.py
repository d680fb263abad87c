"""Each rule of ./dev lint catches what it is there for, and lets good code pass."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lint"))

import compiled  # noqa: E402
import links  # noqa: E402
import lists  # noqa: E402
import names  # noqa: E402
import python  # noqa: E402
import quotes  # noqa: E402
import rooms  # noqa: E402
import sizes  # noqa: E402
import source  # noqa: E402


def messages(findings: list[source.Finding]) -> list[str]:
    return [finding.message for finding in findings]


class RoomsTest(unittest.TestCase):
    TABLE = rooms.read_table("""
        base
        plan/graph
        plan/layout  plan/graph
        kernels
        engine/record  plan/graph   # a comment
        engine/reference  plan/layout kernels
        command  *
        """)

    def includes(self, path: str, *headers: str) -> list[str]:
        text = "".join(f"#include {header}\n" for header in headers)
        return messages(rooms.check_includes(path, text, self.TABLE))

    def test_arrows_are_transitive_and_base_is_for_all(self) -> None:
        self.assertEqual(
            self.includes(
                "trireme/engine/reference/serial_executor.cc",
                '"trireme/engine/reference/serial_executor.h"',
                '"trireme/plan/graph/graph.h"',
                '"trireme/kernels/reduce/tree.h"',
                '"trireme/base/log.h"',
                "<ATen/core/Tensor.h>",
                "<vector>",
            ),
            [],
        )

    def test_an_arrow_that_is_not_in_the_table(self) -> None:
        found = self.includes("trireme/plan/graph/cuts.cc", '"trireme/plan/layout/plan.h"')
        self.assertEqual(found, ["plan/graph may not use plan/layout (trireme/rooms.txt)"])
        self.assertTrue(self.includes("trireme/base/log.h", '"trireme/kernels/half.h"'))
        self.assertTrue(self.includes("trireme/kernels/half.h", '"trireme/plan/graph/graph.h"'))

    def test_public_headers_are_for_all_and_use_none_of_rooms(self) -> None:
        self.assertEqual(self.includes("trireme/plan/graph/cuts.cc", '"trireme/plan.h"'), [])
        self.assertEqual(self.includes("include/trireme/session.h", '"trireme/plan.h"'), [])
        self.assertEqual(
            self.includes("include/trireme/plan.h", '"trireme/plan/graph/graph.h"'),
            ['"trireme/plan/graph/graph.h" is not public'],
        )

    def test_vendor_headers_where_they_do_not_belong(self) -> None:
        for path, header in (
            ("trireme/plan/graph/graph.h", "<torch/torch.h>"),
            ("trireme/kernels/reduce/tree.cc", "<ATen/core/Tensor.h>"),
            ("tests/plan/graph/graph_test.cc", "<c10/core/ScalarType.h>"),
            ("trireme/engine/record/record.cc", "<cuda_runtime.h>"),
            ("trireme/kernels/cpu/x.cc", "<nccl.h>"),
            ("trireme/kernels/cpu/x.cc", "<rdma/fabric.h>"),
            ("trireme/kernels/cpu/x.cc", "<curl/curl.h>"),
            ("trireme/kernels/cpu/x.cc", "<arrow/array.h>"),
        ):
            self.assertEqual(self.includes(path, header), [f"{header} does not belong here"])
        self.assertEqual(self.includes("tests/engine/record/x_test.cc", "<torch/torch.h>"), [])
        self.assertEqual(self.includes("trireme/kernels/cuda/x.cu", "<cuda_runtime.h>"), [])

    def test_includes_that_are_not_from_the_root(self) -> None:
        self.assertTrue(self.includes("trireme/plan/graph/cuts.cc", '"cuts.h"'))

    def test_a_folder_that_is_no_room(self) -> None:
        self.assertTrue(self.includes("trireme/misc/x.h"))

    def links(self, path: str, text: str) -> list[str]:
        return messages(rooms.check_links(path, text, self.TABLE))

    def test_link_lists(self) -> None:
        path = "trireme/plan/graph/CMakeLists.txt"
        self.assertEqual(self.links(path, "trireme_room(plan/graph\n  TESTS a_test.cc\n)"), [])
        found = self.links(path, "trireme_room(plan/graph\n  SOURCES a.cc\n  USES plan/layout\n)")
        self.assertEqual(found, ["plan/graph may not link plan/layout (trireme/rooms.txt)"])
        self.assertTrue(self.links(path, "trireme_room(plan/graph USES plan/grap)"))
        self.assertTrue(self.links(path, "trireme_room(kernels SOURCES a.cc)"))
        # What only the tests use is free.
        self.assertEqual(self.links(path, "trireme_room(plan/graph TEST_USES kernels)"), [])

    def test_a_table_with_a_cycle_or_a_repetition(self) -> None:
        for bad in ("a b\nb a", "a\na", "a a"):
            with self.assertRaises(ValueError):
                rooms.read_table(bad)

    def test_the_table_of_this_repository(self) -> None:
        table = rooms.read_table((ROOT / rooms.TABLE).read_text())
        self.assertTrue(table.may_use("engine/reference", "plan/graph"))
        self.assertTrue(table.may_use("command", "data"))
        self.assertFalse(table.may_use("plan/graph", "kernels"))
        self.assertFalse(table.may_use("kernels", "data"))


FUNCTIONS = """
namespace trireme {
struct Point { int x = 0; int y{1}; };
const std::array<int, 2> kTable = {{1, 2}};
enum class Kind { kA, kB };
#define MACRO(x) \\
  do { (x); } while (false)
/* { */ const char* text = "} {";
class Shape {
 public:
  explicit Shape(int size) : size_{size} {
    call();
  }
  int size() const { return size_; }

 private:
  int size_;
};
template <typename T = int>
T twice(
    T value) {
  if (value > 0) {
    auto add = [&](T other) { return value + other; };
    return add('{');
  }
  return R"(})";
}
bool operator==(const Shape& a, Shape b) { return a.size() == b.size(); }
TEST(Suite, Name) {
  for (int i : {1, 2}) {
  }
}
}  // namespace trireme
"""


class SizesTest(unittest.TestCase):
    def test_finds_the_functions_and_nothing_else(self) -> None:
        lines = FUNCTIONS.splitlines()
        found = [
            (lines[first - 1], last - first + 1) for first, last in sizes.cpp_functions(FUNCTIONS)
        ]
        self.assertEqual(
            found,
            [
                ("  explicit Shape(int size) : size_{size} {", 3),
                ("  int size() const { return size_; }", 1),
                ("    T value) {", 7),
                (
                    "bool operator==(const Shape& a, Shape b) { return a.size() == b.size(); }",
                    1,
                ),
                ("TEST(Suite, Name) {", 4),
            ],
        )

    def test_long_functions(self) -> None:
        def function(lines: int) -> str:
            return "void f() {\n" + "  call();\n" * (lines - 2) + "}\n"

        self.assertEqual(sizes.check_file("trireme/data/a.cc", function(60)), [])
        self.assertEqual(
            messages(sizes.check_file("trireme/data/a.cc", function(61))),
            ["function of 61 lines; at most 60"],
        )
        self.assertEqual(sizes.check_file("trireme/kernels/norm/a.cc", function(61)), [])
        python = "def f():\n" + "    call()\n" * 60
        self.assertTrue(sizes.check_file("tools/lint/a.py", python))

    def test_long_files(self) -> None:
        self.assertEqual(sizes.check_file("trireme/data/a.h", "\n" * 400), [])
        self.assertTrue(sizes.check_file("trireme/data/a.h", "\n" * 401))
        self.assertTrue(sizes.check_file("dev", "\n" * 401))
        self.assertTrue(sizes.check_file("trireme/data/README.md", "\n" * 41))
        self.assertEqual(sizes.check_file("README.md", "\n" * 100), [])


class ListsTest(unittest.TestCase):
    LISTS = {
        "trireme/plan/graph/CMakeLists.txt": {"graph.cc", "graph.h", "graph_test.cc"},
        "trireme/kernels/CMakeLists.txt": {"reduce/tree.cc"},
        "cli/CMakeLists.txt": {"main.cc"},
        "recipes/t5/CMakeLists.txt": {"model.cc", "model.h", "model_test.cc"},
        "tests/CMakeLists.txt": set(),
        "tests/models/CMakeLists.txt": {"mlp.h"},
    }

    def found(self, path: str) -> list[str]:
        return messages(lists.check_paths([path], self.LISTS))

    def test_listed(self) -> None:
        for path in (
            "cli/main.cc",
            "trireme/plan/graph/graph.cc",
            "trireme/kernels/reduce/tree.cc",
            "tests/plan/graph/graph_test.cc",
            "tests/models/mlp.h",
            "recipes/t5/model.h",
            "tests/recipes/t5/model_test.cc",
            "tests/plan/graph/pictures.h",
            "README.md",
        ):
            self.assertEqual(self.found(path), [], path)

    def test_forgotten(self) -> None:
        self.assertEqual(
            self.found("tests/plan/graph/cuts_test.cc"),
            ["trireme/plan/graph/CMakeLists.txt does not list cuts_test.cc"],
        )
        self.assertTrue(self.found("trireme/kernels/reduce/fold.cc"))
        self.assertTrue(self.found("trireme/data/source.cc"))
        self.assertTrue(self.found("cli/verbs.cc"))
        self.assertTrue(self.found("trireme/plan/graph/cuts.h"))
        self.assertTrue(self.found("recipes/t5/stack.h"))
        self.assertTrue(self.found("tests/recipes/t5/stack_test.cc"))


class NamesTest(unittest.TestCase):
    TEXT = """
        #define BRACE {
        namespace a::b {
        namespace {
        struct Hidden {};
        }  // namespace
        template <typename T>
        class Shape final : public Base {
          struct Inner {};
        };
        struct Shape2;
        struct Outer::Part {};
        Shape make(struct Argument) { struct Local {}; }
        enum class Kind : int { kOne };
        }  // namespace a::b
        """

    def test_types_of_named_namespaces(self) -> None:
        found = [name for name, _ in names.defined_types(self.TEXT)]
        self.assertEqual(found, ["a::b::Shape", "a::b::Outer::Part", "a::b::Kind"])

    def test_one_name_for_two_types(self) -> None:
        one, two = "trireme/room/one.cc", "trireme/room/two.h"
        text = "namespace room {\nstruct Exchange {\n};\n}\n"
        found = [str(finding) for finding in names.check_files({one: text, two: text})]
        self.assertEqual(found, [f"{two}:2: room::Exchange is defined in {one} too"])

    def test_one_name_in_two_rooms(self) -> None:
        def found(name: str, *paths: str) -> list[str]:
            headers = dict.fromkeys(paths, f"namespace x {{ struct {name} {{}}; }}")
            return messages(names.check_rooms(headers, RoomsTest.TABLE))

        one, two = "trireme/kernels/a.h", "trireme/engine/record/a.h"
        text = f"Route is a type of another room too: {one}"
        self.assertEqual(found("Route", one, two, "trireme/engine/record/b.h"), [text] * 2)
        self.assertEqual(found("Route", one, "trireme/kernels/cuda/a.h"), [])
        self.assertEqual(found("Plan", "include/trireme/a.h", two), [])  # holds it
        self.assertTrue(found("Plan", one, two) and found("Route", "include/trireme/a.h", two))


class LinksTest(unittest.TestCase):
    def test_links(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "docs/other.md").write_text("# A `b` title, twice\n\n## A b title, twice\n")
            (root / "a.md").write_text(
                "# Top\n"
                "[good](docs/other.md) [good](docs/other.md#a-b-title-twice-1) [good](#top)\n"
                "[good](https://example.org/x) `[code](none.md)`\n"
                "```\n[code](none.md)\n```\n"
                "[bad](none.md) [bad](docs/other.md#none) [bad](#none)\n"
            )
            self.assertEqual(
                [str(finding) for finding in links.check_document(root, "a.md")],
                [
                    "a.md:7: none.md: no such file",
                    "a.md:7: docs/other.md#none: no such heading",
                    "a.md:7: #none: no such heading",
                ],
            )


class QuotesTest(unittest.TestCase):
    def test_a_quote_is_part_of_its_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "main.cc").write_text("// Head.\nint x;\nint y;\n")

            def found(file: str, code: str) -> list[str]:
                text = f"Text.\n\n<!-- quote: {file} -->\n```cpp\n{code}```\n"
                return [str(finding) for finding in quotes.check_text(root, "a.md", text)]

            self.assertEqual(found("main.cc", "int x;\nint y;\n"), [])
            self.assertEqual(
                found("main.cc", "int  x;\n"), ["a.md:3: differs from main.cc, which it quotes"]
            )
            self.assertEqual(found("none.cc", ""), ["a.md:3: quotes none.cc: no such file"])


class RepositoryTest(unittest.TestCase):
    """Rules that need a repository or a compiler."""

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "-C", self.root, *identity, *arguments], check=True)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self, path: str, text: str) -> None:
        self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", path)

    @unittest.skipUnless((ROOT / ".venv/bin/mypy").exists(), "./dev lint installs mypy")
    def test_python_has_form_rules_and_types(self) -> None:
        self.write("pyproject.toml", (ROOT / "pyproject.toml").read_text())
        self.write("a.py", "def twice(x: int) -> int:\n    return 2 * x\n")
        self.assertEqual(python.check(self.root, ROOT / ".venv/bin"), [])
        self.write("b.py", "def half(x: int) -> int:\n   return x / 2\nl = 1\n")
        found = messages(python.check(self.root, ROOT / ".venv/bin"))
        self.assertEqual(
            [text.split(":")[0] for text in found], ["ruff format", "ruff check", "mypy"]
        )
        self.assertIn("b.py", found[2])

    def test_what_counts_as_changed(self) -> None:
        def changed() -> list[str]:
            return source.changed_files(self.root)[0]

        self.write(".gitignore", "build/\n")
        self.write("build/x.cc", "")
        self.write("a.cc", "")
        self.assertEqual(changed(), [".gitignore", "a.cc"])  # no commit yet
        self.commit("a.cc", "1")
        self.assertEqual(changed(), [".gitignore", "a.cc"])  # no commit before
        self.commit("b.cc", "1")
        self.assertEqual(changed(), ["b.cc"])  # clean, no origin
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.assertEqual(changed(), ["b.cc"])  # clean checkout of origin/main
        self.write("c.cc", "1")
        self.assertEqual(changed(), ["c.cc"])  # not committed
        self.commit("c.cc", "1")
        self.commit("d.cc", "1")
        self.assertEqual(changed(), ["c.cc", "d.cc"])  # a branch

    def test_headers_that_do_not_compile_alone(self) -> None:
        self.write("build/lint_commands.txt", f"c++ -std=c++20 -I{self.root}\n\n\n\n")
        self.write("trireme/a.h", "#pragma once\n#include <string>\ninline std::string f();\n")
        self.write("trireme/b.h", '#pragma once\n#include "trireme/a.h"\nstd::vector<int> g();\n')
        sources = compiled.Sources(self.root)
        paths = ["trireme/a.h", "trireme/b.h"]
        for _ in range(2):  # the second time from the cache
            jobs = compiled.header_jobs(sources, paths, self.root / "build")
            found = compiled.run_jobs(self.root, jobs)
            self.assertEqual(
                [(finding.path, finding.line) for finding in found], [("trireme/b.h", 3)]
            )
        self.write("trireme/a.h", "#pragma once\ninline std::string f();\n")
        jobs = compiled.header_jobs(compiled.Sources(self.root), paths, self.root / "build")
        self.assertEqual(len(compiled.run_jobs(self.root, jobs)), 2)

    def test_which_files_need_torch(self) -> None:
        self.write("trireme/engine/a.h", "")
        self.write("tests/models/mlp.h", "#include <torch/torch.h>\n")
        self.write("tests/x_test.cc", '#include "tests/models/mlp.h"\n')
        self.write("trireme/data/b.h", "#include <vector>\n")
        sources = compiled.Sources(self.root)
        for path, needs in (
            ("trireme/engine/a.h", True),
            ("tests/x_test.cc", True),
            ("trireme/data/b.h", False),
        ):
            self.assertEqual(sources.needs_torch(path), needs, path)


if __name__ == "__main__":
    unittest.main()
