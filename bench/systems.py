"""One training run of ddprun, and one of PyTorch DDP under torchrun. `hosts`, if given, are namespaces.Hosts, with the
same number of ranks on each."""

import json
import os
import pathlib
import secrets

from namespaces import variables_of
from running import run, run_together

PEER = pathlib.Path(__file__).resolve().parent / "peers" / "pytorch_ddp.py"
PORT = 29500  # each host has its own ports


def on_each(hosts, folder, limit, argv, nodes):
    """Starts `argv` and nodes(host) on each host. Returns the stdout of host 0."""
    commands = [hosts.command(host, [*argv, *nodes(host)], variables_of(folder, host)) for host in range(hosts.count)]
    return run_together(commands, limit, env=os.environ | {"DDPRUN_SECRET": secrets.token_hex(32)})[0]


def ddprun_on_each(hosts, folder, limit, argv):
    """The same for a command of ddprun."""
    return on_each(hosts, folder, limit, argv, lambda host: ["--nnodes", hosts.count, "--node-rank", host,
                                                             "--master-addr", hosts.address(0)])


def run_folder(out):
    """That of a training whose stdout is `out`."""
    return pathlib.Path(out.strip().splitlines()[-1].removeprefix("run folder: "))


def train(program, config, folder, limit, hosts=None):
    """Trains with `config`, the text of a TOML file. Returns the summary and rank 0's steps; times are in seconds."""
    path = folder / "bench.toml"
    path.write_text(config)
    argv = [program, "--config", path, "--set", f"experiment.output={folder / 'runs'}"]
    out = ddprun_on_each(hosts, folder, limit, argv) if hosts else run(argv, limit)
    results = run_folder(out)
    steps = [json.loads(line) for line in (results / "steps-rank0.jsonl").read_text().splitlines()]
    return json.loads((results / "summary.json").read_text()), steps


def pytorch_ddp(python, ranks, limit, threads, hosts=None, folder=None, **job):
    """Runs peers/pytorch_ddp.py with the options in `job`, and returns what it prints. `ranks`: on each host."""
    launcher = [python, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    argv = [PEER, f"--threads={threads}", *(f"--{name}={value}" for name, value in job.items())]
    if hosts:
        def nodes(host):
            return [f"--nnodes={hosts.count}", f"--node-rank={host}", f"--master-addr={hosts.address(0)}",
                    f"--master-port={PORT}", *argv]
        out = on_each(hosts, folder, limit, ["env", "GLOO_SOCKET_IFNAME=eth0", *launcher], nodes)
    else:
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": "lo"}
        out = run([*launcher, "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", *argv], limit, env=environment)
    return json.loads(out.strip().splitlines()[-1])
