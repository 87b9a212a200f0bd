#!/usr/bin/env python3
"""An object that is compiled for an instruction set must not offer a function to other objects: the linker keeps one
of several equal inline functions, and a processor without that instruction set would run it.

    linkage_test.py NM OBJECT...
"""
import subprocess
import sys

nm, objects = sys.argv[1], [o for o in sys.argv[2:] if "avx" in o.rsplit("/", 1)[-1]]
found = []
for name in objects:
    for line in subprocess.run([nm, "-C", "--defined-only", name], capture_output=True, text=True, check=True).stdout.splitlines():
        kind, symbol = line[17:].split(" ", 1)
        if kind in "TWu":
            found.append(f"{name}: offers {symbol}")
print("\n".join(found) if found else f"{len(objects)} objects offer no function")
sys.exit(1 if found else 0)
