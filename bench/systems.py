"""One training run of ddprun, and one of PyTorch DDP under torchrun."""

import json
import os
import pathlib

from running import run

PEER = pathlib.Path(__file__).resolve().parent / "peers" / "pytorch_ddp.py"


def train(program, config, folder, limit):
    """Trains with `config`, the text of a TOML file. Returns the summary and rank 0's steps; times are in seconds."""
    path = folder / "bench.toml"
    path.write_text(config)
    out = run([program, "--config", path, "--set", f"experiment.output={folder / 'runs'}"], limit)
    results = pathlib.Path(out.strip().splitlines()[-1].removeprefix("run folder: "))
    steps = [json.loads(line) for line in (results / "steps-rank0.jsonl").read_text().splitlines()]
    return json.loads((results / "summary.json").read_text()), steps


def pytorch_ddp(python, ranks, limit, threads, **job):
    """Runs peers/pytorch_ddp.py with the options in `job`, and returns what it prints."""
    argv = [python, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
            f"--nproc-per-node={ranks}", PEER, f"--threads={threads}"]
    argv += [f"--{name}={value}" for name, value in job.items()]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": "lo"}
    return json.loads(run(argv, limit, env=environment).strip().splitlines()[-1])
