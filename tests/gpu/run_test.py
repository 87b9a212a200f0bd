"""tests/gpu/run where there is no GPU: what it refuses, and that a check that fails is in the table and in the exit code."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import checks  # noqa: E402
import speeds  # noqa: E402


def run(*arguments, program=HERE / "run", **more):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60, **more)
    return done.returncode, done.stdout, done.stderr


def with_torch(folder, version, cuda, gpus):
    """An environment whose Python has a torch of this version, which sees so many GPUs."""
    site = pathlib.Path(folder) / f"site-{version}-{gpus}"
    package = site / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        f"__version__ = '{version}'\nclass version: cuda = {cuda!r}\n"
        f"class cuda:\n    device_count = staticmethod(lambda: {gpus})\n")
    return {**os.environ, "PYTHONPATH": str(site)}


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Arguments(unittest.TestCase):
    def refused(self, code, text, *arguments, **more):
        got, out, err = run(*arguments, **more)
        self.assertEqual(got, code, err)
        self.assertIn(text, err)
        self.assertEqual(out, "")

    def test_what_is_not_known_or_not_there_is_refused_before_anything_is_built(self):
        self.refused(2, "--nonsense: unknown", "--nonsense", "x")
        self.refused(2, "--packages: expected a value", "--packages")
        self.refused(2, "/nowhere: no such folder", "--packages", "/nowhere")
        self.refused(2, "/nowhere: no such folder", "--headers", "/nowhere")
        self.refused(2, "--only nothing: expected some of conformance,training,parity,speed,graphs,busbw,ucx", "--only", "nothing")
        self.refused(2, "--only ucx: name UCX's folder with --ucx", "--only", "ucx")
        self.refused(2, "/nowhere: no such folder", "--ucx", "/nowhere")
        self.refused(2, "--json /nowhere/x: no folder /nowhere", "--json", "/nowhere/x")

    def test_help_tells_the_options(self):
        code, out, _ = run("--help")
        self.assertEqual(code, 0)
        for option in ["--python", "--packages", "--headers", "--ucx", "--build", "--json", "--only", "--quick", "--build-only"]:
            self.assertIn(option, out)

    def test_a_python_without_the_right_torch_and_a_machine_without_a_gpu_are_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            def python(*torch):
                return {"env": with_torch(folder, *torch)}

            self.refused(2, "torch 2.7.0", "--python", sys.executable, **python("2.7.0", "12.6", 1))
            self.refused(2, "expected 2.11, built for CUDA 13", "--python", sys.executable, **python("2.11.0+cpu", None, 0))
            self.refused(3, "no GPU: torch in", "--python", sys.executable, **python("2.11.0+cu130", "13.0", 0))


class Built(unittest.TestCase):
    def test_every_plugin_that_a_check_uses_is_built(self):
        (targets,) = re.findall(r"^ninja (?:.*\\\n)*.*$", (HERE / "run").read_text(), re.MULTILINE)
        machine = checks.Machine(pathlib.Path(), 1, False, pathlib.Path())
        lines = "\n".join(how.more for how in checks.strategies(machine))
        backends = set(re.findall(r'comm.backend = "(\w+)"', lines))
        self.assertGreater(len(backends), 1)
        for target in [f"comm_{name}" for name in backends] + [f"model_{name}" for name in checks.MODELS]:
            self.assertIn(f"ddprun_{target} ", targets)


    def copied(self, folder, header):
        """tests/gpu in a checkout of its own that needs this header, with a CMake that tells its arguments."""
        here = pathlib.Path(folder) / "checkout" / "tests" / "gpu"
        shutil.copytree(HERE, here, ignore=shutil.ignore_patterns("__pycache__"))
        (here.parents[1] / "bench").symlink_to(HERE.parents[1] / "bench")
        (here / "packages.txt").write_text(f"{header} libwanted-dev\n")
        tools = pathlib.Path(folder) / "tools"
        tools.mkdir()
        script(tools / "cmake", 'printf "%s\\n" "$@"; exit 1')
        return here / "run", {"PATH": f"{tools}:{os.environ['PATH']}"}

    def test_a_prefix_has_headers_of_the_machines_kind_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            program, environment = self.copied(folder, "ddprun_test/wanted.h")
            where = {"env": with_torch(folder, "2.11.0+cu130", "13.0", 0) | environment}
            prefix, build = pathlib.Path(folder) / "prefix", pathlib.Path(folder) / "build"
            (prefix / "include").mkdir(parents=True)
            arguments = ["--build-only", "--python", sys.executable, "--build", build, "--headers", prefix]
            code, _, err = run(*arguments, program=program, **where)
            self.assertEqual((code, "ddprun_test/wanted.h (libwanted-dev)" in err), (2, True), err)
            kind = subprocess.check_output(["g++", "-print-multiarch"], text=True).strip()
            (prefix / "include" / kind / "ddprun_test").mkdir(parents=True)
            (prefix / "include" / kind / "ddprun_test" / "wanted.h").touch()
            code, _, err = run(*arguments, program=program, **where)
            self.assertEqual((code, "cannot be configured" in err), (2, True), err)
            flags = f"-idirafter {prefix}/include/{kind} -idirafter {prefix}/include"
            self.assertIn(f"-DCMAKE_CXX_FLAGS={flags}\n", (build / "configure.log").read_text())

    def test_packages_become_a_prefix_that_links(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "root"
            for path in ["DEBIAN", "lib/any", "usr/lib/any"]:
                (root / path).mkdir(parents=True)
            (root / "DEBIAN" / "control").write_text(
                "Package: z\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: of a test\n")
            (root / "lib/any/libz.so.1.2").touch()
            (root / "lib/any/libz.so.1").symlink_to("libz.so.1.2")
            (root / "usr/lib/any/libz.so").symlink_to("/lib/any/libz.so.1.2")
            (root / "usr/lib/any/other").symlink_to("/etc/not-of-a-package")
            packages, unpacked = pathlib.Path(folder) / "packages", pathlib.Path(folder) / "unpacked"
            packages.mkdir()
            subprocess.check_call(["dpkg-deb", "-b", root, packages / "z.deb"], stdout=subprocess.DEVNULL)
            for _ in range(2):  # again, over what the first left
                subprocess.check_call([HERE / "unpack", packages, unpacked])
                there = unpacked / "usr/lib/any"
                self.assertTrue((there / "libz.so.1").samefile(there / "libz.so.1.2"))
                self.assertEqual(os.readlink(there / "libz.so"), "libz.so.1.2")
                self.assertEqual(os.readlink(there / "other"), "/etc/not-of-a-package")


class Failures(unittest.TestCase):
    """With programs that stand for the built ones."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = pathlib.Path(self.folder.name)
        (self.build / "bin").mkdir()

    def check(self, *arguments):
        done = subprocess.run([sys.executable, HERE / "checks.py", "--build", self.build, *map(str, arguments)],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def program(self, name, text):
        return script(self.build / "bin" / name, text)

    def test_a_suite_that_passes_is_ok(self):
        self.program("ddprun-conformance", "echo 12 passed, 0 failed, 0 skipped")
        code, out, _ = self.check("--only", "conformance")
        self.assertEqual(code, 0)
        self.assertIn("conformance of nccl, several ranks on one GPU  ok      12 passed", out)
        self.assertIn("1 ok, 0 failed", out)

    def test_a_suite_that_fails_or_is_skipped_is_a_failure(self):
        for code in [6, 77]:
            self.program("ddprun-conformance", f"echo it is so; exit {code}")
            got, out, _ = self.check("--only", "conformance")
            self.assertEqual(got, 1)
            self.assertIn("FAILED", out)
            self.assertIn("0 ok, 1 failed", out)

    def test_all_gpus_are_tested_where_there_are_several(self):
        self.program("ddprun-conformance", 'echo "$*"')
        _, out, _ = self.check("--only", "conformance", "--gpus", 4)
        self.assertIn("conformance of nccl, 4 GPUs", out)
        self.assertIn("--ranks 2,4", out)

    def test_ucx_is_held_to_the_memory_of_gpus_where_its_folder_is_named(self):
        self.program("ddprun-conformance", 'echo "$*"')
        code, out, _ = self.check("--only", "ucx", "--ucx")  # there is no program to train with
        self.assertEqual(code, 1)
        self.assertIn("conformance of ucx, several ranks on one GPU  ok ", out)
        self.assertIn("--memory cuda --as processes", out)
        self.assertNotIn("ucx", checks.arguments([]).only)
        self.assertIn("ucx", checks.arguments(["--ucx"]).only)

    def test_a_check_that_fails_does_not_keep_the_others_from_running(self):
        self.program("ddprun-conformance", "echo fine")
        got, out, _ = self.check("--only", "training,busbw,conformance")  # there is no program to train with
        self.assertEqual(got, 1)
        self.assertIn("1 ok, 2 failed", out)

    def train_with(self, on_cpu, on_gpu, by_heart=0.1):
        """A ddprun whose every run leaves these test losses, and ResNet-18's this training loss."""
        self.program("ddprun", f"""
            grep -q '"cpu"' "$2" && loss={on_cpu} || loss={on_gpu}
            grep -q resnet18 "$2" && learnt={by_heart} || learnt=$loss
            mkdir -p {self.build}/r && : >{self.build}/r/steps-rank0.jsonl
            echo "{{\\"train.loss\\": $learnt, \\"test.loss\\": $loss}}" >{self.build}/r/summary.json
            echo run folder: {self.build}/r""")
        return self.check("--only", "training", "--quick")

    def test_a_loss_that_is_not_the_cpus_is_a_failure(self):
        self.assertEqual(self.train_with(2.0, 2.001)[0], 0)
        code, out, _ = self.train_with(2.0, 2.08)
        self.assertEqual(code, 1)
        self.assertIn("training, single                      FAILED  linear 2.08 / 2.08 (CPU 2 / 2)", out)
        self.assertIn("training, single, bf16                ok      linear", out)
        self.assertIn("training, single, fp16                ok      simplenet", out)
        self.assertEqual(self.train_with(2.0, "NaN")[0], 1)

    def test_a_resnet_that_has_not_learnt_its_batch_is_a_failure_under_every_strategy(self):
        for loss in [2.3, "NaN"]:
            code, out, _ = self.train_with(2.0, 2.001, loss)
            self.assertEqual(code, 1)
            self.assertIn("\n0 ok, ", out)

    def test_speed_and_busbw_below_what_is_wanted_are_failures(self):
        machine = checks.Machine(self.build, 2, False, self.build)
        self.addCleanup(setattr, speeds, "bench", speeds.bench)
        self.addCleanup(setattr, speeds, "loop", speeds.loop)
        speeds.loop = lambda machine, sizes: [1.0 for _ in sizes]
        for seconds, good in [(1.01, True), (1.05, False)]:
            speeds.bench = lambda machine, sizes: [seconds for _ in sizes]
            self.assertEqual(all(result.good for result in checks.busbw(machine)), good)

    def test_a_graph_that_replays_too_little_or_learns_something_else_is_a_failure(self):
        machine = checks.Machine(self.build, 1, True, self.build)
        self.addCleanup(setattr, speeds, "trained_by", speeds.trained_by)
        for replayed, loss, good in [(17, 2.01, True), (16, 2.01, False), (17, 2.1, False)]:
            speeds.trained_by = lambda machine, kind, graph, steps: (300.0, replayed, loss) if graph else (100.0, 0, 2.0)
            results = list(checks.graphs(machine))
            self.assertEqual([result.good for result in results], [good, good])
            self.assertIn("300 images/s, without 100, ratio 3.00", results[0].told)

    def test_the_figures_are_kept(self):
        self.program("ddprun-conformance", "echo fine")
        path = self.build / "figures.json"
        self.check("--only", "conformance", "--json", path)
        self.assertEqual(json.loads(path.read_text())["results"][0]["told"], "fine")


unittest.main()
