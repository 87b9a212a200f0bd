#!/usr/bin/env python3
"""rust_abi_test.py SOURCE: examples/comm_tcp_rust has the numbers, fields, offsets and sizes of the C headers. It is
written by hand, and must not stay behind when a header grows."""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
folder = source / "core/include/ddprun/plugin"
headers = "".join((folder / name).read_text() for name in ("comm_plugin.h", "option_spec.h"))
fixed = (source / "tests/abi/test_layout.cpp").read_text()
rust = (source / "examples/comm_tcp_rust/ddprun_abi.rs").read_text()
layout = (source / "examples/comm_tcp_rust/layout_test.rs").read_text()
structs = set(re.findall(r"^} (ddprun_\w+);$", headers, re.M))


def compare(what, c, rust):
    c, rust = set(c), set(rust)
    if c != rust:
        sys.exit(f"{what}: only in C: {sorted(c - rust)}; only in Rust: {sorted(rust - c)}")
    if len(c) < 5:
        sys.exit(f"{what}: only {sorted(c)} was found")
    print(f"ok: {len(c)} {what}")


def of_structs(rows):
    return [row for row in rows if row[0] in structs]


def value(text):
    one, _, shift = text.partition(" << ")
    return int(one) << int(shift or 0)


compare("numbers",
        [(name, value(text)) for name, text in re.findall(r"\b(DDPRUN_\w+) = (\d+(?: << \d+)?)", headers)] +
        [("DDPRUN_COMM_ABI", int(re.search(r"#define DDPRUN_COMM_ABI (\d+)", headers)[1]))],
        [(name, value(text)) for name, text in re.findall(r"const (DDPRUN_\w+): \w+ = (\d+(?: << \d+)?);", rust)])
compare("sizes", of_structs(re.findall(r"^STRUCT\((\w+), (\d+)\);", fixed, re.M)),
        re.findall(r"size_of::<(\w+)>\(\) == (\d+)\)", rust))
compare("fields", of_structs(re.findall(r"^FIELD\((\w+), (\w+), (\d+), (\d+)\);", fixed, re.M)),
        re.findall(r"^ *field!\((\w+), (?:r#)?(\w+), (\d+), (\d+)\);", layout, re.M))
