#!/usr/bin/env python3
"""Rooms keep their borders (docs/architecture.md): looks at what each source file includes.

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
# From the ground up: a room includes only rooms to its left, and the sdk.
ROOMS = ["base", "config", "plugin", "cuda", "launch", "comm", "record", "checkpoint", "data", "report", "bench", "fetch", "compare", "train", "run", "app"]
SHARED = {"beside", "host", "reduction"}  # what the communication plugins share
TORCH_ROOMS = {"train", "run", "app"}
TORCH_ADAPTER = {"core/launch/tcp_store.cpp"}  # c10d's store, a target of its own


def sources(folder):
    return [f for f in sorted((root / folder).rglob("*")) if f.suffix in {".cpp", ".hpp", ".h", ".c"}]


def faults():
    for file in sources("core") + sources("plugins"):
        name = file.relative_to(root).as_posix()
        parts = name.split("/")
        room = parts[1]
        for include in INCLUDE.findall(file.read_text()):
            first = include.split("/")[0]
            if parts[0] == "plugins":
                if first in ROOMS:
                    yield f"{name}: includes {include}: a plugin sees only the sdk"
                if (root / "plugins" / include).is_file() and first not in SHARED:
                    yield f"{name}: includes {include}: of the plugins, only {' and '.join(sorted(SHARED))} are there for all"
                if (room.startswith("comm_") or room in SHARED) and TORCH.match(include):
                    yield f"{name}: includes {include}: a communication plugin is torch-free"
                continue
            if TORCH.match(include) and room not in TORCH_ROOMS and name not in TORCH_ADAPTER and room != "sdk":
                yield f"{name}: includes {include}: the room is torch-free"
            if TOML.match(include) and room != "config":
                yield f"{name}: includes {include}: only config/ sees toml types"
            if DLL.match(include) and room != "plugin":
                yield f"{name}: includes {include}: only plugin/ sees Boost.DLL"
            if first in ROOMS and room in ROOMS and ROOMS.index(first) > ROOMS.index(room):
                yield f"{name}: includes {include}: dependencies point downwards only"
            if room == "sdk" and first in ROOMS:
                yield f"{name}: includes {include}: the sdk stands alone"


found = list(faults())
# Only train/ turns a tensor into memory for a backend.
for file in sources("core"):
    name = file.relative_to(root).as_posix()
    if not name.startswith("core/train/") and re.search(r"\bdata_ptr\b", file.read_text()):
        found.append(f"{name}: data_ptr: only train/ turns a tensor into a pointer")

print("\n".join(found) if found else f"all {len(sources('core')) + len(sources('plugins'))} files keep the borders")
sys.exit(1 if found else 0)
