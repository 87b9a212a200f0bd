"""A hook of mkdocs: the public headers by Doxygen, in api/, and the page headers.md that lists them.

The headers have ordinary comments; Doxygen reads copies in which these are its own kind.
"""

import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

FOLDERS = ["core/include", "c/include"]
output = tempfile.TemporaryDirectory(prefix="ddprun-headers-")  # until the process ends: mkdocs copies from it


def escaped(comment):
    """Text in which Doxygen sees no tags and no commands."""
    parts = re.split(r"(`[^`\n]*`)", comment)
    return "".join(part if part[:1] == "`" else re.sub(r"([\\@<>#%&])", r"\\\1", part) for part in parts)


def of_cpp(text):
    column = None  # of a comment behind code, which may go on in the next line
    for line in text.split("\n"):
        code, comment = re.fullmatch(r'((?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*)(//.*)?', line).groups()
        behind = comment and (code.strip() not in ("", "}") or column == len(code))
        column = len(code) if behind else None
        if comment and code.strip() != "}":
            line = f"{code}///{'<' if behind else ''}{escaped(comment[2:])}"
        yield line


def of_c(text):
    def comment(match):
        return f"{match[1]}/**{'<' if match[1].strip() else ''}{escaped(match[2])}*/"

    return re.sub(r"^(.*?)/\*(.*?)\*/", comment, text, flags=re.M | re.S)


def for_doxygen(path):
    text = path.read_text()
    text = of_c(text) if path.suffix == ".h" else "\n".join(of_cpp(text))
    opening, rest = text[:3], re.sub(r"\A ?(ddprun/\S+: )?", "", text[3:])
    return f"{opening} \\file\n{opening if opening == '///' else ' *'} {rest}"


def summary(path):
    """The first sentence of a header."""
    comment = re.match(r"(?:(?://|/\*| \*).*\n)+", path.read_text())[0]
    words = " ".join(re.sub(r"^(//|/\*| \*/?) ?|\*/$", "", comment, flags=re.M).split())
    return re.sub(r"^ddprun/\S+: ", "", words).split(". ")[0].rstrip(".")


def on_files(files, config):
    root, out = pathlib.Path(config.config_file_path).resolve().parent, pathlib.Path(output.name)
    headers = {str(path.relative_to(root / folder)): path for folder in FOLDERS for path in sorted((root / folder).rglob("*.h*"))}
    for name, path in headers.items():
        (out / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (out / "in" / name).write_text(for_doxygen(path))
    settings = f"@INCLUDE = docs/site/Doxyfile\nINPUT = {out}/in\nSTRIP_FROM_PATH = {out}/in\nOUTPUT_DIRECTORY = {out}\n" \
               f"GENERATE_TAGFILE = {out}/tags.xml\n"
    run = subprocess.run(["doxygen", "-"], input=settings, cwd=root, capture_output=True, text=True)
    if run.returncode:
        raise PluginError(f"headers.md: doxygen:\n{run.stderr.replace(f'{out}/in/', '')}")
    for file in (out / "api").rglob("*.*"):
        files.append(File.generated(config, f"api/{file.relative_to(out / 'api')}", abs_src_path=str(file)))
    page = "# Public headers\nDoxygen's pages: [all headers](api/files.html), [all classes](api/annotated.html).\n\n" \
           "| header | about |\n| --- | --- |\n"
    links = config.extra["headers"] = {}  # for files.py
    for entry in xml.etree.ElementTree.parse(out / "tags.xml").findall("compound[@kind='file']"):
        name = entry.findtext("path").removeprefix(f"{out}/in/") + entry.findtext("name")
        links[str(headers[name].relative_to(root))] = url = f"api/{entry.findtext('filename').removesuffix('.html')}.html"
        page += f"| [{name}]({url}) | {summary(headers[name])} |\n"
    files.append(File.generated(config, "headers.md", content=page))
    return files
