#!/usr/bin/env python3
"""action_test.py WHEELS: runs the steps of action.yml as GitHub does, for a plugin that is right and for mistakes.

WHEELS is a folder with the wheel ddprun. pip installs it alone, without the packages that it requires.
"""
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

# PyYAML is in the environment of mkdocs, which ./run-tests installs.
cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
sys.path += glob.glob(f"{cache}/ddprun/site-*/lib/python3*/site-packages")
try:
    import yaml
except ImportError:
    print("skipped: Python has no module yaml; ./run-tests installs it")
    sys.exit(77)

root = pathlib.Path(__file__).resolve().parents[2]
action = yaml.safe_load((root / "action.yml").read_text())
ring = root / "examples/comm_tcp_ring"
INSTALL, BUILD, TEST, MEASURE = range(4)


class Runner:
    """What a job has: a workspace, a folder for temporary files, and files by which steps tell later ones of variables."""

    def __init__(self, box):
        self.box = box
        self.workspace = box / "workspace"
        self.workspace.mkdir()
        self.variables = {**os.environ, "HOME": str(box), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "RUNNER_TEMP": str(box)}
        for name in ("GITHUB_PATH", "GITHUB_ENV", "GITHUB_STEP_SUMMARY"):
            self.variables[name] = str(box / name)
            (box / name).touch()

    def summary(self):
        return (self.box / "GITHUB_STEP_SUMMARY").read_text()

    def run(self, first, **inputs):
        """Runs the steps from `first` on, up to one that fails. Returns its number, exit code and output."""
        values = {name: str(spec.get("default", "")) for name, spec in action["inputs"].items()} | inputs
        for number, step in enumerate(action["runs"]["steps"][first:], first):
            assert step["shell"] == "bash" and "${{" not in step["run"], step["name"]
            variables = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], value)
                         for name, value in step["env"].items()}
            variables["PATH"] = ":".join([*reversed(self.lines("GITHUB_PATH")), os.environ["PATH"]])
            variables |= dict(line.split("=", 1) for line in self.lines("GITHUB_ENV"))
            done = subprocess.Popen(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                                    env=self.variables | variables, cwd=self.workspace, stdin=subprocess.DEVNULL,
                                    text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                output = done.communicate(timeout=400)[0]
            except subprocess.TimeoutExpired:
                os.killpg(done.pid, signal.SIGKILL)
                sys.exit(f"action_test: \"{step['name']}\" takes more than 400 s")
            if done.returncode:
                break
        return number, done.returncode, output

    def lines(self, name):
        return (self.box / name).read_text().splitlines()


def check(holds, what):
    if not holds:
        sys.exit(f"action_test: {what}")


def refuses(text, step, result, code=1):
    """One line says the error, and the steps end there."""
    number, status, output = result
    errors = re.findall(r"^::error::(.*)", output, re.M)
    check(number == step and status == code and len(errors) == 1 and text in errors[0],
          f"expected \"{text}\" in step {step}; step {number} ended with {status}:\n{output}")


def main(wheels):
    with tempfile.TemporaryDirectory(prefix="ddprun-action-") as folder:
        box = pathlib.Path(folder)
        runner = Runner(box)
        right = {"ddprun": os.path.abspath(wheels), "plugin": "tcp_ring", "source": str(ring), "ranks": "2,3",
                 "conformance": "--as threads --filter float64 --slack 15000", "bench": "--sizes 4K --rounds 1 -n 2"}
        refuses("./nowhere is not there", INSTALL, runner.run(INSTALL, **right | {"ddprun": "./nowhere"}))
        refuses("pip cannot install ddprun==99", INSTALL, runner.run(INSTALL, **right | {"ddprun": "ddprun==99"}))

        number, code, output = runner.run(INSTALL, **right)
        check(code == 0, f"step {number} ended with {code}:\n{output}")
        for text in ("### tcp_ring: ddprun conformance", " 0 failed", "### tcp_ring: ddprun bench", " gloo "):
            check(text in runner.summary(), f"no \"{text}\" in the summary:\n{runner.summary()}")

        refuses("give the plugin's name", BUILD, runner.run(BUILD, **right | {"plugin": ""}))
        refuses("nowhere has no CMakeLists.txt", BUILD, runner.run(BUILD, **right | {"source": "nowhere"}))
        refuses("makes no libddprun_comm_other.so", BUILD, runner.run(BUILD, **right | {"plugin": "other"}))
        refuses("--ranks: Value x", TEST, runner.run(TEST, **right | {"ranks": "x"}), 2)
        refuses("there is", MEASURE, runner.run(MEASURE, **right | {"compare": "nothing"}), 3)

        shutil.rmtree(box / "plugin-tcp_ring")
        wrong = runner.workspace / "wrong"
        shutil.copytree(ring, wrong)
        source = wrong / "ring_reduce.c"
        source.write_text("#error broken\n" + source.read_text())
        refuses("wrong cannot be built", BUILD, runner.run(BUILD, **right | {"source": "wrong"}))
        source.write_text((ring / source.name).read_text().replace("(number)a[i] + (number)b[i]", "(number)a[i] - (number)b[i]"))
        refuses("failed", TEST, runner.run(BUILD, **right | {"source": "wrong"}), 6)
        check("FAILED  world 2" in runner.summary(), f"no failure in the summary:\n{runner.summary()}")
    print("passed: the steps of action.yml, and nine mistakes")


if __name__ == "__main__":
    main(*sys.argv[1:])
