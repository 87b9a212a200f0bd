"""One job on three simulated hosts, with a launcher on each. For rows/hosts.py."""

import re
import subprocess

import private
from harness import Skip
from place import TRAINING
from wired import WiredHosts, namespaces

HOSTS = 3
PORT = "29500"
SECRET = "5" * 64


class Cluster:
    """Host h runs the ranks from per_host * h. Each has an output folder and a folder for job files of its own."""

    def __init__(self, place):
        if reason := namespaces.why_not():
            raise Skip(reason)
        self.place = place
        self.hosts = WiredHosts(HOSTS)
        self.jobs = []
        self.config = place.config(TRAINING.replace("nproc = 3\n", ""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hosts.close()

    def folder(self, host, name):
        path = self.place.folder / f"{name}{host}"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def start(self, host, *settings, per_host=1, master=None, secret=SECRET, nnodes=HOSTS):
        """The launcher of this host: Job."""
        argv = [*self.hosts.prefix(host), "env", f"XDG_RUNTIME_DIR={self.folder(host, 'job')}", self.place.program,
                "--nnodes", str(nnodes), "--node-rank", str(host), "--master-addr", master or self.hosts.address(0),
                "--master-port", PORT, "-n", str(per_host), "--config", self.config]
        for setting in (f"experiment.output={self.folder(host, 'runs')}", *settings):
            argv += ["--set", setting]
        return self.place.start(argv, {"DDPRUN_SECRET": secret} if secret else {})

    def train(self, *settings, **how):
        self.jobs = [self.start(host, *settings, **how) for host in range(HOSTS)]
        return self.jobs

    def commits(self, host=0):
        return sorted(self.folder(host, "runs").glob("*/checkpoints/step-????????.safetensors"))

    def lost_in(self, host, per_host):
        """The hosts that the last line of a launcher names as lost; None: the line says something else."""
        line = self.jobs[host].last_line()
        if not re.fullmatch(r"ddprun: failed: ranks? [\d, and]+ \(node\d\): lost: [^;]*(; [^;]* lost too)*", line):
            return None
        named = {int(name): ranks for ranks, name in re.findall(r"ranks? ([\d, and]+) \(node(\d)\)", line)}
        for name, ranks in named.items():
            if [int(rank) for rank in re.findall(r"\d+", ranks)] != [per_host * name + i for i in range(per_host)]:
                return None
        return set(named)

    def left(self, killed=()):
        """What is left after the job, as texts. killed: as in Place.left()."""
        left = self.place.left(killed)
        for host in range(HOSTS):
            left += [f"node{host}: {path.name}" for path in self.folder(host, "job").iterdir()]
            files, table = (subprocess.run(self.hosts.prefix(host) + look, capture_output=True, text=True,
                                           check=True).stdout
                            for look in (["ls", str(private.SHM)], ["cat", str(private.SEGMENTS)]))
            left += [f"node{host}: {name}" for name in files.splitlines() + private.left_segments(table)]
        return left
