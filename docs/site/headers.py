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

# Comments in C; in C++ on lines of their own, and behind code, which may go on below.
IN_C = re.compile(r"^([^\n]*?)/\*(.*?)\*/", re.M | re.S)
OWN_LINES = re.compile(r"^( *)//(.*(?:\n\1//.*)*)", re.M)
BEHIND_CODE = re.compile(r'^(?! *//)((?:[^"/\n]|"(?:\\.|[^"\\\n])*"|/(?![/*]))+)//(.*(?:\n {16,}//.*)*)', re.M)


def for_doxygen(path):
    text = path.read_text()
    for pattern in [IN_C] if path.suffix == ".h" else [BEHIND_CODE, OWN_LINES]:
        text = pattern.sub(translated, text)
    return re.sub(r"\A/\*\* (ddprun/\S+: )?", r"/** \\file\n\n", text)


def translated(match):
    """A comment as one of Doxygen's, for which `<` and others are no text, and code is indented by 4 spaces or more."""
    before, lines = match[1], re.sub(r"^ *(//|\*(?!/))", "", match[2], flags=re.M).split("\n")
    if re.match(r"}|(class|struct) \w+;", before):
        return match[0]
    code, above = False, "  "
    for index, line in enumerate(lines):
        starts = not code and line[:3] == "   " and above[:2] != "  " and not re.match(" +- ", line)
        code, above = starts or code and line[:3] in ("", "   "), line
        if code:
            lines[index] = "\n" * starts + "    " + line
        else:
            parts = re.split(r"(`[^`]*`)", line)
            parts[::2] = [re.sub(r"([\\@<>#%&])", r"\\\1", part) for part in parts[::2]]
            lines[index] = "".join(parts)
    return f"{before}/**{'<' if before.strip() else ''}{chr(10).join(lines)} */"


def summary(path):
    """The first sentence of a header."""
    comment = re.match(r"(?:(?://|/\*| \*) .*\n)+", path.read_text())[0]
    words = " ".join(re.sub(r"^(//|/\*| \*/?) ?|\*/$", "", comment, flags=re.M).split())
    sentence = re.split(r"\. (?!\d)", re.sub(r"^ddprun/\S+: ", "", words))[0].rstrip(".:")
    return re.sub(r"^\w(?!\w*\.h )", lambda first: first[0].upper(), sentence) + "."


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
    (out / "api/index.html").write_text('<meta http-equiv="refresh" content="0; url=../headers.html">')  # empty otherwise
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
