"""A hook of mkdocs: the page commands.md, from the help of the program DDPRUN_BIN and of its tools."""

import os
import re
import subprocess

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

START = "# Commands\nWhat each command prints with `--help`.\n"


def on_files(files, config):
    program = os.environ.get("DDPRUN_BIN") or os.path.join(
        os.path.dirname(config.config_file_path), "build/release/bin/ddprun")
    if not os.access(program, os.X_OK):
        raise PluginError(f"commands.md: {program} is no program: build it, or set DDPRUN_BIN to a built ddprun")
    files.append(File.generated(config, "commands.md", content=START + "".join(sections(program, []))))
    return files


def sections(program, words):
    """The help of a command, then that of the commands that it lists."""
    # Without a PATH, no tools but our own.
    run = subprocess.run([program, *words, "--help"], env={}, capture_output=True, text=True, timeout=60)
    if run.returncode:
        raise PluginError(f"commands.md: {program} {' '.join(words)} --help: exit code {run.returncode}: {run.stderr}")
    yield f"\n## {' '.join(['ddprun', *words])}\n```text\n{run.stdout.strip()}\n```\n"
    for block in re.findall(r"^(?:Subcommands|Tools):\n((?: .*\n)+)", run.stdout, re.M):
        for name in re.findall(r"^  ([a-z][a-z0-9-]*) ", block, re.M):
            yield from sections(program, [*words, name])
