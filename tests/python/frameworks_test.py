#!/usr/bin/env python3
"""Training with Lightning or accelerate over Gloo, and with only the backend's name changed over ddprun's backends: all
weights must have the same bits. Two ranks, so the order of sums is the same.

    python tests/python/frameworks_test.py FOLDER lightning|accelerate [PLUGIN...]   # FOLDER: where the package ddprun is
"""
import importlib.metadata
import importlib.util
import os
import pathlib
import sys
import tempfile

FOLDER, FRAMEWORK, *PLUGINS = sys.argv[1:]
for module in ("torch", FRAMEWORK):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: {sys.executable} has no {module} (./run-tests installs what cmake/setup/torch-*.txt name; or set "
              f"DDPRUN_PYTHON to a Python with torch, and pip install {FRAMEWORK})")
        sys.exit(77)

import torch  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
from running import run  # noqa: E402

LIMIT = 240  # seconds; the frameworks start slowly on a busy machine


def train(backend, folder):
    """What frameworks.py writes. Its ranks end with the call."""
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
                                "PYTHONPATH": os.pathsep.join([FOLDER, os.environ.get("PYTHONPATH", "")])}
    file = f"{folder}/{backend}.pt"
    run([sys.executable, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
         "--nproc-per-node=2", HERE / "frameworks.py", FRAMEWORK, backend, file], LIMIT, env=environment, cwd=folder)
    return torch.load(file)


def differing(one, other):
    return [name for name in one.keys() | other.keys()
            if name not in one or name not in other or not torch.equal(one[name], other[name])]


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ddprun-test-") as folder:
        expected = train("gloo", folder)
        print(f"{FRAMEWORK} {importlib.metadata.version(FRAMEWORK)}: gloo: {expected['figures']}", flush=True)
        assert expected["figures"]["accuracy"] > 0.9, "it has not learned"
        for plugin in PLUGINS or ["shm"]:
            found = train("ddprun_" + plugin, folder)
            different = differing(expected["weights"], found["weights"])
            print(f"ddprun_{plugin}: {f'different: {different}' if different else 'the same bits'}: {found['figures']}")
            failed += bool(different) or found["figures"] != expected["figures"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
