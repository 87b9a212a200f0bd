#!/usr/bin/env python3
"""follow.py BUILD PAGE: follows a page of the installed package as its reader would.

It installs the build into ~/.local of an empty home, by way of another prefix, and does there in order what the page says:
- ```sh: runs the commands as they are written, in one shell;
- ```LANGUAGE FILE: writes the file, or, if it exists, checks that it has these lines;
- other blocks only show something.
A warning of the compiler is a failure, too.
It checks first that the links of all installed pages lead to installed files.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT = 540  # seconds, for all commands of a page


def blocks(text):
    """(language, file, content, line) of each block."""
    for match in re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```$", text, re.M | re.S):
        yield *match.groups(), text.count("\n", 0, match.start()) + 1


def dead_links(pages):
    for page in [*pages.glob("*.md"), *pages.glob("examples/*.md")]:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            if not (page.parent / link).exists():
                yield f"{page.name}: {link}"


def script(page):
    """The page as a shell script, which ends at the first failure."""
    lines = ["set -euo pipefail"]
    for language, file, content, line in blocks(page.read_text()):
        if language == "sh":
            lines += [f"echo '== {page.name}:{line}'", *without_absent_programs(content)]
        elif file:
            lines.append(f"python3 {__file__} --file {page} {line}")
    return "\n".join(lines)


def without_absent_programs(content):
    for command in re.split(r"(?<!\\)\n", content.strip()):
        program = re.sub(r"^(\w+=\S+ (\\\n *)?)*", "", command).split()[0]
        if program in ("gdb", "valgrind") and not shutil.which(program):
            yield f"echo 'skipped: {program} is not installed'"
        else:
            yield command


def write_or_check(page, number):
    file, content = next((file, content) for _, file, content, line in blocks(page.read_text()) if line == number)
    path = pathlib.Path(file)
    if not path.exists():
        path.write_text(content)
    elif content not in path.read_text():
        sys.exit(f"{page.name}:{number}: {file} does not have these lines")


def main():
    if sys.argv[1] == "--file":
        return write_or_check(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
    build, name = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ddprun-page-") as folder:
        home = pathlib.Path(folder) / "home"
        home.mkdir()
        subprocess.run(["cmake", "--install", build, "--prefix", f"{folder}/first"], check=True, stdout=subprocess.DEVNULL)
        shutil.move(f"{folder}/first", home / ".local")
        pages = home / ".local/share/doc/ddprun"
        if dead := list(dead_links(pages)):
            sys.exit("links to files that are not installed:\n" + "\n".join(dead))
        unset = ("DDPRUN_PLUGIN_PATH", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "XDG_DATA_HOME")
        environment = {key: value for key, value in os.environ.items() if key not in unset}
        environment |= {"HOME": str(home), "CMAKE_GENERATOR": "Ninja"}
        # ccache returns what an earlier run has compiled. CCACHE_BASEDIR makes paths relative, because this folder has
        # another name in each run.
        if shutil.which("ccache"):
            cache = subprocess.run(["ccache", "--get-config", "cache_dir"], check=True, capture_output=True, text=True)
            environment |= {"PATH": "/usr/lib/ccache:" + os.environ["PATH"], "CCACHE_DIR": cache.stdout.strip(),
                            "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1",
                            "CCACHE_SLOPPINESS": "include_file_ctime"}
        commands = script(pages / name)
        done = subprocess.run(["timeout", str(LIMIT), "bash", "-c", commands], cwd=home, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        print(done.stdout)
        sys.exit(done.returncode or int("warning:" in done.stdout))


if __name__ == "__main__":
    main()
