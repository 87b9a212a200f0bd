#!/usr/bin/env python3
"""The layout of docs/architecture.md: which folder may include which, how many lines each may have, and the length of
the reading list.

    includes_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
SUFFIXES = {".c", ".cpp", ".cu", ".h", ".hpp"}

# From the ground up: a folder may include the public headers, itself, and these folders, which stand above it here.
TRAIN = "core/train/device core/train/tensor core/train/reduce core/train/optim core/train/loop"
MAY_INCLUDE = {
    "core/include": "",
    "sdk": "",
    "core/base": "",
    "core/plugin": "core/base",
    "core/cuda": "",
    "core/record": "core/base",
    "core/checkpoint": "core/base",
    "core/comm": "core/base core/plugin core/record",
    "core/data": "core/base core/plugin",
    "core/train/device": "core/cuda",
    "core/train/tensor": "core/base core/checkpoint core/comm core/train/device",
    "core/train/reduce": "core/comm core/train/device core/train/tensor",
    "core/train/optim": "core/checkpoint core/comm core/train/tensor",
    "core/train/loop": "core/base core/plugin core/record core/checkpoint core/comm core/data core/train/device "
                       "core/train/tensor core/train/reduce core/train/optim",
    "c": "core/base core/plugin core/comm",
    "launch/net": "core/base",
    "launch": "core/base launch/net",
    "elastic": "core/base core/comm core/record core/train/device core/train/tensor core/train/reduce core/train/optim core/train/loop launch",
    "ddp": f"core/base core/plugin core/checkpoint core/comm core/data {TRAIN} launch elastic",
    "cli/config": "core/base",
    "cli/console": "core/base launch",
    "cli/run": f"core/base core/plugin core/cuda core/record core/checkpoint core/comm core/data {TRAIN} launch/net "
               "launch elastic ddp cli/config cli/console",
    "cli": "core/base core/plugin core/record core/checkpoint core/comm core/data launch cli/config cli/console cli/run",
    "testing": "core/base",
    "tools/lib": "core/base core/cuda core/record core/comm launch/net launch cli/console",
    "tools/new": "core/base cli/console",
    "tools/report": "core/base core/record cli/config cli/console tools/lib",
    "tools/bench": "core/base core/plugin core/cuda core/record core/comm launch/net launch cli/config cli/console "
                   "testing tools/lib",
    "tools/data": "core/base core/data cli/config cli/console tools/lib",
    "tools/compare": "core/base core/record cli/config cli/console tools/lib tools/report",
    "tools/predict": "core/base core/record cli/config cli/console tools/lib tools/report",
    "tools/tune": "core/base core/plugin core/record core/comm cli/config cli/console tools/lib tools/report "
                  "tools/compare tools/predict",
    "tools/conformance": "core/base core/plugin core/cuda core/comm core/data cli/console testing tools/lib",
    "tools/conformance/model": "core/base core/plugin core/data core/train/tensor core/train/loop cli/console "
                               "tools/conformance",
    "tools/doctor": "core/base core/plugin core/cuda launch/net launch cli/console tools/lib",
}
SEES_TORCH = {"core/include", "elastic", "ddp", "cli/run", "tools/conformance/model", *TRAIN.split()}
SEES_TORCH_TOO = {"launch/tcp_store.cpp"}  # torchrun's store, a target of its own
ONLY_IN = {  # headers that are slow to compile, or that one folder hides from the others
    r"^toml": {"cli/config"},
    r"^boost/dll": {"core/plugin"},
    r"^CLI/": {"cli/console/command_line.hpp"},
}
COMMAND_LINE = {"cli/console/command_line.hpp", "tools/compare/running_options.hpp"}  # include CLI11
BUILDS_COMMAND_LINE = {"cli/cli.cpp", "cli/console/command_line.cpp"}  # and each main.cpp


def sources(*folders):
    files = [file for folder in folders for file in (root / folder).rglob("*")]
    return sorted(file.relative_to(root).as_posix() for file in files if file.suffix in SUFFIXES)


def folder_of(name):
    while name and name not in MAY_INCLUDE:
        name = name.rpartition("/")[0]
    return name


def included_file(include):
    for base in ("core/include/", "c/include/", "core/", ""):
        if (root / (base + include)).is_file():
            return base + include
    return ""


def errors_of_plugin(name, include):
    other = included_file(include)
    if other and not other.startswith(("core/include/", "plugins/lib/")) and not other.startswith(name.rpartition("/")[0]):
        yield "a plugin sees only the public headers and plugins/lib/"
    if (root / "plugins" / include).is_file():
        yield "of the plugins folder, only lib/ is for all"
    if name.split("/")[1].startswith(("comm_", "lib")) and TORCH.match(include):
        yield "a communication plugin is torch-free"


def errors_of_file(name, include):
    folder, other = folder_of(name), folder_of(included_file(include))
    if other not in ("", folder, "core/include", *MAY_INCLUDE[folder].split()):
        yield f"{folder}/ does not know {other}/"
    if TORCH.match(include) and folder not in SEES_TORCH and name not in SEES_TORCH_TOO:
        yield f"{folder}/ is torch-free"
    for pattern, places in ONLY_IN.items():
        if re.match(pattern, include) and not places & {folder, name}:
            yield f"only {', '.join(places)} includes it"
    is_command_line = name.endswith("/main.cpp") or name in BUILDS_COMMAND_LINE
    if include in COMMAND_LINE and name.endswith(".cpp") and not is_command_line:
        yield "it includes CLI11: of a program, only main.cpp does"


# A test includes of the tools only the one that it tests, those that this one is made of, and tools/lib.
def errors_of_test(name, include):
    other = folder_of(included_file(include))
    tested = folder_of(name.removeprefix("tests/"))
    if other.startswith("tools/") and other not in ("tools/lib", tested, *MAY_INCLUDE.get(tested, "").split()):
        if not name.startswith("tests/fuzz/"):
            yield "a test does not include a tool that it does not test"


def wrong_includes():
    unused = {(folder, other) for folder, others in MAY_INCLUDE.items() for other in others.split()}
    folders = {"core": errors_of_file, "sdk": errors_of_file, "c": errors_of_file, "launch": errors_of_file, "elastic": errors_of_file, "ddp": errors_of_file,
               "cli": errors_of_file, "testing": errors_of_file, "tools": errors_of_file,
               "plugins": errors_of_plugin, "python": errors_of_plugin, "tests": errors_of_test}
    for top, rule in folders.items():
        for name in sources(top):
            if rule is errors_of_file and not folder_of(name):
                yield f"{name}: belongs to no folder that {sys.argv[0]} knows"
                continue
            for include in INCLUDE.findall((root / name).read_text()):
                unused.discard((folder_of(name), folder_of(included_file(include))))
                for error in rule(name, include):
                    yield f"{name}: includes {include}: {error}"
    for folder, other in sorted(unused):
        yield f"the rules: {folder}/ may include {other}/, and does not"


def wrong_order():
    above = set()
    for folder, others in MAY_INCLUDE.items():
        for other in set(others.split()) - above:
            yield f"the rules: {folder}/ may include {other}/, which is not above it: a circle is possible"
        above.add(folder)


# Only train/ turns a tensor into memory for a backend.
def wrong_pointers():
    for name in sources("core", "launch", "elastic", "ddp", "cli"):
        if not name.startswith("core/train/") and re.search(r"\bdata_ptr\b", (root / name).read_text()):
            yield f"{name}: data_ptr: only train/ turns a tensor into a pointer"


# What differs between the versions of Torch is in one header.
def wrong_versions():
    for name in sources("core", "launch", "elastic", "ddp", "cli", "c", "tools", "plugins", "python", "tests", "examples"):
        if name != "tests/support/torch_versions.hpp" and re.search(r"\bTORCH_VERSION_", (root / name).read_text()):
            yield f"{name}: TORCH_VERSION_: only tests/support/torch_versions.hpp asks for Torch's version"


def lines_of(names):
    return sum(len((root / name).read_text().splitlines()) for name in names)


# | `core/` | ... | 18,000 |
def wrong_sizes(page):
    limits = re.findall(r"^\| `(\w+)/` \|.*\| ([\d,]+) \|$", page, re.M)
    if len(limits) < 8:
        yield "docs/architecture.md: the table of folders with their limits is not there"
    for folder, limit in limits:
        lines = lines_of(sources(folder))
        if lines > int(limit.replace(",", "")):
            yield f"{folder}/ has {lines:,} lines; docs/architecture.md allows {limit}"


def wrong_reading_list(page):
    listed = re.findall(r"^- \[`[^`]+`\]\(\.\./([^)]+)\)$", page, re.M)
    missing = [name for name in listed if not (root / name).is_file()]
    lines = lines_of(name for name in listed if name not in missing)
    for name in missing:
        yield f"docs/architecture.md: {name} is not there"
    if not listed or lines > 3000:
        yield f"docs/architecture.md: the reading list has {len(listed)} files with {lines} lines; at most 3,000"


page = (root / "docs/architecture.md").read_text()
found = [*wrong_order(), *wrong_includes(), *wrong_pointers(), *wrong_versions(), *wrong_sizes(page), *wrong_reading_list(page)]
print("\n".join(found) if found else "all files keep to the layout of docs/architecture.md")
sys.exit(1 if found else 0)
