"""A hook of mkdocs: the pages as GitHub shows them. It adds the pages outside docs/, and translates what differs."""

import os
import pathlib
import re

from mkdocs.structure.files import File

OUTSIDE = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md", "examples/README.md", "examples/*/README.md"]
LINK = re.compile(r"(?<!!)\[([^][]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def root_of(config):
    return pathlib.Path(config.config_file_path).resolve().parent


def on_files(files, config):
    root = root_of(config)
    for pattern in OUTSIDE:
        for page in sorted(root.glob(pattern)):
            files.append(File.generated(config, page.relative_to(root).as_posix(), abs_src_path=str(page)))
    return files


def on_page_markdown(markdown, page, config, files):
    root = root_of(config)
    source = page.file.abs_src_path
    if not source or not pathlib.Path(source).resolve().is_relative_to(root):  # a page that a hook wrote
        return markdown
    folder = pathlib.Path(source).resolve().parent

    def link(match):
        text, target, anchor = match[1], match[2], match[3] or ""
        path = pathlib.Path(os.path.normpath(folder / target))
        if not path.is_relative_to(root):
            return match[0]
        name = path.relative_to(root).as_posix()
        for uri in (name.removeprefix("docs/"), f"{name}/README.md", config.extra.get("headers", {}).get(name)):
            if uri and files.get_file_from_path(uri):
                return f"[{text}]({os.path.relpath(uri, os.path.dirname(page.file.src_uri) or '.')}{anchor})"
        # The project has no public address yet, so a link to a file of the source tree becomes the file's name. What
        # does not exist stays a link, which --strict refuses.
        plain = text.strip("`")
        if not path.exists():
            return match[0]
        return f"`{plain}`" if plain in name else f"{text} (`{name}`)"

    return "\n".join(translate(markdown.split("\n"), link))


def translate(lines, link):
    """Python-Markdown needs a blank line before a list or a table, and four spaces before what belongs to an item."""
    fence, before, gap = False, "", False  # gap: a blank line since the last item
    for line in lines:
        if re.match(r" *```", line):
            fence = not fence
            line = re.sub(r"^( *```\w+) (\S+)$", r'\1 title="\2"', line)  # ```cpp FILE, for tests/pages/follow.py
        elif not fence:
            kind = re.match(r" *(\||[-*] |\d+\. |)", line)[1]
            if kind and before.strip() and (gap or not re.match(r" *(\||[-*] |\d+\. | )", before)):
                yield ""
            gap = not kind and (gap or not line.strip())
            line = re.sub(r"^ {2,3}(?=\S)", "    ", LINK.sub(link, line))
        yield line
        before = line
