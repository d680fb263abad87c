"""A reference of public headers by doxygen's XML: a page each, what they declare in their order."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

Element = ElementTree.Element

_MARKS = {"computeroutput": "`", "bold": "**", "emphasis": "*"}
_SIGNS = {"sp": " ", "linebreak": "\n", "ndash": "–", "mdash": "—", "nonbreakablespace": " "}


@dataclass(frozen=True)
class Entry:
    """A type, a function or another declaration outside of types."""

    header: str
    line: int
    name: str
    element: Element

    @property
    def anchor(self) -> str:
        name = self.name.removeprefix("trireme::").replace("::", "-")
        return re.sub(r"^@", "constants-", re.sub(r"[^\w@-]", "", name))


def text_of(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def line_of(declared: Element) -> int:
    place = declared.find("location")
    return 0 if place is None else int(place.attrib["line"])


def child(element: Element, name: str) -> str:
    return text_of(element.find(name))


class Docs:
    """Comments as Markdown."""

    def __init__(self, entries: list[Entry]) -> None:
        self._places: dict[str, str] = {}  # of an id of doxygen
        for entry in entries:
            for element in entry.element.iter():
                if element.get("id"):
                    self._places.setdefault(
                        element.attrib["id"], f"{entry.header}.md#{entry.anchor}"
                    )

    def of(self, element: Element) -> str:
        """All that is said about a declaration: paragraphs."""
        names = ("briefdescription", "detaileddescription")
        parts = [self._inside(found).strip() for name in names if (found := element.find(name))]
        return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part for part in parts if part))

    def _inside(self, element: Element) -> str:
        text = self._text(element.text)
        for inner in element:
            text += self._element(inner) + self._text(inner.tail)
        return text

    def _element(self, element: Element) -> str:
        tag = element.tag
        if tag in _SIGNS:
            return _SIGNS[tag]
        if tag == "computeroutput":
            return f"`{text_of(element)}`"
        if tag in _MARKS:
            return f"{_MARKS[tag]}{self._inside(element)}{_MARKS[tag]}"
        if tag == "verbatim":
            return f"\n\n```cpp\n{''.join(element.itertext()).rstrip()}\n```\n\n"
        if tag in ("para", "itemizedlist", "orderedlist"):
            return f"\n\n{self._inside(element).strip()}\n\n"
        if tag == "listitem":
            said = re.sub(r"\n\n+", "\n\n", self._inside(element).strip())
            return "* " + said.replace("\n", "\n    ") + "\n"
        if tag == "ref":
            place = self._places.get(element.attrib["refid"])
            return f"[{self._inside(element)}]({place})" if place else self._inside(element)
        raise ValueError(f"a comment of the public headers has <{tag}>, which api.py does not know")

    @staticmethod
    def _text(text: str | None) -> str:
        return re.sub(r"([*<])", r"\\\1", text or "")


def spaced(code: str) -> str:
    """Code as we write it, not as doxygen does."""
    code = re.sub(r"< ", "<", re.sub(r" >", ">", code))
    code = re.sub(r" ([&*]+)(?=[\s,)]|$)", r"\1", code)
    code = re.sub(r" ([&*]+)(?=\w)", r"\1 ", code)
    code = re.sub(r"(?<!operator) ?(?<![=!<>])=(?!=) ?", " = ", code).replace("= typedef ", "= ")
    return re.sub(r"[ \n]+", " ", code).strip()


def declaration(member: Element) -> str:
    """One line, without its namespace."""
    name, kind = child(member, "name"), member.attrib["kind"]
    if kind == "define":
        words = ", ".join(child(param, "defname") for param in member.findall("param"))
        return f"#define {name}({words})" if words else f"#define {name}"
    if kind == "enum":
        base, strong = child(member, "type"), " class" if member.get("strong") == "yes" else ""
        return f"enum{strong} {name.lstrip('@0123456789')}".strip() + (f" : {base}" if base else "")
    code = child(member, "definition").replace(child(member, "qualifiedname") or name, name)
    if kind == "function":
        code += child(member, "argsstring")
    initial = child(member, "initializer")
    if kind == "variable" and len(initial) <= 40:
        code += " " + initial
    params = [
        f"{child(param, 'type')} {child(param, 'declname')}".strip()
        for param in member.findall("templateparamlist/param")
    ]
    return (f"template <{', '.join(params)}> " if params else "") + spaced(code)


def enum_values(member: Element, docs: Docs) -> str:
    rows = [(child(value, "name"), docs.of(value)) for value in member.findall("enumvalue")]
    return "".join(f"* `{name}`{': ' + said if said else ''}\n" for name, said in rows)


def block(code: str) -> str:
    """A block of declarations, the parameters of long ones on lines of their own."""
    lines = "\n".join(broken(line) if len(line) > 90 else line for line in code.splitlines())
    return f"```cpp\n{lines}\n```\n\n" if lines else ""


def broken(line: str) -> str:
    """A declaration of a function, broken at the commas of its outermost parentheses."""
    text, depth = "", 0
    for character in line:
        depth += (character in "(<[{") - (character in ")>]}")
        text += character
        if (character, depth) in (("(", 1), (",", 1)):
            text += "\n   " if character == "," else "\n    "
    return text


def members(compound: Element, docs: Docs) -> str:
    """The public ones of a type: fields as a list, functions without a comment together."""
    text, bare = "", ""
    found = [member for member in compound.iter("memberdef") if member.attrib["prot"] == "public"]
    for member in sorted(found, key=line_of):
        if child(member, "name").startswith("~") or child(member, "argsstring").endswith("delete"):
            continue
        kind, code, said = member.attrib["kind"], declaration(member), docs.of(member)
        if kind == "function" and not said:
            bare += code + ";\n"
            continue
        text, bare = text + block(bare), ""
        if kind == "variable":
            text += f"* `{code}`" + (f": {said}" if said else "").replace("\n", "\n    ") + "\n"
            continue
        text += "\n" + block(code + ";") + said + "\n\n"
        if kind == "enum":
            text += enum_values(member, docs) + "\n"
    return text + "\n" + block(bare)


def section(entry: Entry, docs: Docs) -> str:
    """What the page says about an entry, below its heading."""
    element = entry.element
    if element.tag == "compounddef":
        bases = ", ".join(f"public {text_of(base)}" for base in element.findall("basecompoundref"))
        name = entry.name.rpartition("::")[2]
        code = f"{element.attrib['kind']} {name}" + (f" : {bases}" if bases else "")
        return f"{block(code)}{docs.of(element)}\n\n{members(element, docs)}"
    end = "" if element.attrib["kind"] == "define" else ";"
    text = block(declaration(element) + end) + docs.of(element) + "\n\n"
    return text + (enum_values(element, docs) if element.attrib["kind"] == "enum" else "")


def introduction(text: str) -> str:
    """The comment that a header begins with."""
    found = re.match(r"#pragma once\n\n(?:/\* (.*?) ?\*/|((?:// [^\n]*\n)+))", text, re.S)
    said = (found[1] or found[2]) if found else ""
    return re.sub(r"^(//| \*) ?", "", said, flags=re.M).strip()


def page(header: Path, entries: list[Entry], docs: Docs) -> str:
    text = f"# {header.name}\n\n```cpp\n#include <trireme/{header.name}>\n```\n\n"
    text += introduction(header.read_text()) + "\n\n"
    if not entries:
        inner = re.findall(r'^#include ["<](trireme/\w+\.h)[">]', header.read_text(), re.M)
        text += "Includes " + ", ".join(f"`{name}`" for name in inner) + ".\n"
    named: dict[str, list[Entry]] = {}  # overloads share a heading
    for entry in entries:
        named.setdefault(entry.name, []).append(entry)
    for name, overloads in named.items():
        heading = "Constants" if name.startswith("@") else name
        text += f"## {heading} {{ #{overloads[0].anchor} }}\n\n"
        text += "\n".join(section(entry, docs) for entry in overloads) + "\n"
    return re.sub(r"\n{3,}", "\n\n", text)


def read_entries(xml: Path) -> list[Entry]:
    entries = []
    for file in sorted(xml.glob("*.xml")):
        for compound in ElementTree.parse(file).getroot().findall("compounddef"):
            is_type = compound.attrib["kind"] in ("class", "struct", "union")
            for element in [compound] if is_type else compound.iter("memberdef"):
                place = element.find("location")
                if place is None or element.attrib.get("prot") != "public":
                    continue
                name = child(element, "compoundname" if is_type else "qualifiedname")
                header = Path(place.attrib["file"]).stem
                entries.append(
                    Entry(header, line_of(element), name or child(element, "name"), element)
                )
    unique = {entry.element.attrib["id"]: entry for entry in entries}
    return sorted(unique.values(), key=lambda entry: (entry.header, entry.line))


def run_doxygen(include: Path, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    places = {"INPUT": include, "STRIP_FROM_PATH": include, "OUTPUT_DIRECTORY": out}
    options = Path(__file__).with_name("Doxyfile").read_text()
    options += "".join(f'{name} = "{place}"\n' for name, place in places.items())
    subprocess.run(["doxygen", "-"], input=options, text=True, check=True)


def pages(include: Path, out: Path) -> dict[str, str]:
    """Pages by name, of the headers in include/trireme; `out`: a folder for doxygen's files."""
    headers = sorted(include.glob("trireme/*.h"))
    if headers:
        run_doxygen(include, out)
    entries = read_entries(out / "xml") if headers else []
    docs = Docs(entries)
    index = (
        "# Public headers\n\n"
        "What a program of your own includes. Other headers may change with any version.\n\n"
    )
    written = {}
    for header in headers:
        own = [entry for entry in entries if entry.header == header.stem]
        names = ", ".join(dict.fromkeys(f"`{entry.name.rpartition('::')[2]}`" for entry in own))
        index += (
            f"* [trireme/{header.name}]({header.stem}.md)" + (f": {names}" if names else "") + "\n"
        )
        written[f"api/{header.stem}.md"] = page(header, own, docs)
    return {"api/index.md": index, **written}
