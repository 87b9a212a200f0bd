#!/usr/bin/env python3
"""Modules keep to the dependency rules of docs/architecture.md: looks at what each source file includes. And the
reading list of that page is as short as it says.

    includes_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
TOML = re.compile(r"^toml")
DLL = re.compile(r"^boost/dll")
# From the ground up: a module includes only modules to its left, and the public headers (ddprun/).
CORE = ["base", "config", "plugin", "cuda", "launch", "comm", "record", "checkpoint", "data", "console", "train", "ddp", "app"]
# The same within train/; loop includes all, and reduce and optim do not include each other.
TRAIN = {"device": [], "tensor": ["device"], "reduce": ["tensor", "device"], "optim": ["tensor", "device"],
         "loop": ["reduce", "optim", "tensor", "device"]}
# A tool includes core below train/, and the tools to its left.
TOOLS = ["report", "export", "bench", "data", "compare", "sweep", "predict", "tune", "conformance", "doctor"]
TORCH_MODULES = {"train", "ddp", "app"}
TORCH_ADAPTER = {"core/launch/tcp_store.cpp"}  # c10d's store, a target of its own
COMMAND_LINES = {"core/app/cli.cpp"}  # compiled once for ddprun and its engine
TORCH_CHECKS = {"tools/conformance/model/model_checks.cpp"}  # of models: a program that ddprun-conformance starts


def sources(folder):
    return [f for f in sorted((root / folder).rglob("*")) if f.suffix in {".cpp", ".hpp", ".h", ".c"}]


def errors_of_plugin(parts, include):
    first = include.split("/")[0]
    if first in CORE + ["tools"]:
        yield "a plugin sees only include/ and plugins/lib/"
    if (root / "plugins" / include).is_file():
        yield "of the plugins folder, only lib/ is for all"
    torch_free = parts[1].startswith("comm_") or parts[1] == "lib"
    if torch_free and TORCH.match(include):
        yield "a communication plugin is torch-free"


def errors_of_core(name, module, include):
    first = include.split("/")[0]
    if TORCH.match(include) and module not in TORCH_MODULES and name not in TORCH_ADAPTER and module != "include":
        yield "the module is torch-free"
    if TOML.match(include) and module != "config":
        yield "only config/ sees toml types"
    if DLL.match(include) and module != "plugin":
        yield "only plugin/ sees Boost.DLL"
    if module == "include" and first in CORE:
        yield "public headers include public headers only"
    if first in CORE and module in CORE and CORE.index(first) > CORE.index(module):
        yield "dependencies point downwards only"
    part, other = name.split("/")[2], include.split("/")[1:2]
    if module == first == "train" and other[0] not in [part, *TRAIN[part]]:
        yield f"of train, {part}/ does not know {other[0]}/"
    if module == "train" and first in ("config", "launch"):
        yield "train does not know the launcher nor the config"
    if first == "tools":
        yield "core does not know the tools"
    if TORCH.match(include) and module == "app" and not name.startswith("core/app/run/"):
        yield "of app, only run/ sees LibTorch"


def errors_of_tool(name, module, include):
    parts = include.split("/")
    if (TORCH.match(include) or parts[0] in TORCH_MODULES) and name not in TORCH_CHECKS:
        yield "tools are torch-free"
    if parts[0] == "tools" and TOOLS.index(parts[1]) > TOOLS.index(module):
        yield "a tool includes only the tools before it"


def errors():
    for file in sources("core") + sources("plugins") + sources("tools"):
        name = file.relative_to(root).as_posix()
        parts = name.split("/")
        for include in INCLUDE.findall(file.read_text()):
            if parts[0] == "plugins":
                found = errors_of_plugin(parts, include)
            elif parts[0] == "tools":
                found = errors_of_tool(name, parts[1], include)
            else:
                found = errors_of_core(name, parts[1], include)
            for error in found:
                yield f"{name}: includes {include}: {error}"


found = list(errors())
# CLI11 is slow to compile.
for file in sources("core") + sources("tools"):
    name = file.relative_to(root).as_posix()
    includes = INCLUDE.findall(file.read_text())
    if any(include.startswith("CLI/") for include in includes) and name != "core/console/command_line.hpp":
        found.append(f"{name}: includes CLI11: only console/command_line.hpp does")
    is_command_line = file.name == "main.cpp" or name in COMMAND_LINES
    with_cli11 = {"console/command_line.hpp", "tools/compare/running_options.hpp"} & set(includes)
    if file.suffix == ".cpp" and with_cli11 and not is_command_line:
        found.append(f"{name}: includes CLI11: of a program, only main.cpp does")
# Only train/ turns a tensor into memory for a backend.
for file in sources("core"):
    name = file.relative_to(root).as_posix()
    if not name.startswith("core/train/") and re.search(r"\bdata_ptr\b", file.read_text()):
        found.append(f"{name}: data_ptr: only train/ turns a tensor into a pointer")

# What docs/architecture.md promises of its reading list.
listed = re.findall(r"^- \[`[^`]+`\]\(\.\./([^)]+)\)$", (root / "docs/architecture.md").read_text(), re.M)
missing = [name for name in listed if not (root / name).is_file()]
lines = sum(len((root / name).read_text().splitlines()) for name in listed if name not in missing)
found += [f"docs/architecture.md: {name} is not there" for name in missing]
if not listed or lines > 3000:
    found.append(f"docs/architecture.md: the reading list has {len(listed)} files with {lines} lines; at most 3,000")

count = sum(len(sources(folder)) for folder in ("core", "plugins", "tools"))
print("\n".join(found) if found else f"all {count} files keep to the dependency rules")
sys.exit(1 if found else 0)
