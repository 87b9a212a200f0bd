"""tests/gpu/run where there is no GPU: what it refuses, and what it tells CMake."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import checks  # noqa: E402
from programs import script  # noqa: E402


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
        self.refused(2, "--only nothing: expected some of conformance,training,library,parity,speed,busbw,ucx", "--only", "nothing")
        self.refused(2, "--models other: expected some of linear,simplenet,resnet18", "--models", "linear,other")
        self.refused(2, "--only ucx: name UCX's folder with --ucx", "--only", "ucx")
        self.refused(2, "/nowhere: no such folder", "--ucx", "/nowhere")
        self.refused(2, "--json /nowhere/x: no folder /nowhere", "--json", "/nowhere/x")

    def test_help_tells_the_options(self):
        code, out, _ = run("--help")
        self.assertEqual(code, 0)
        for option in ["--python", "--packages", "--headers", "--ucx", "--build", "--json", "--only", "--models", "--quick", "--build-only"]:
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

    def test_folders_are_told_to_cmake_from_the_root_and_the_wheels_headers_beside_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            program, environment = self.copied(folder, "jpeglib.h")  # which wants <cstdio> before it
            where = {"env": with_torch(folder, "2.11.0+cu130", "13.0", 0) | environment, "cwd": folder}
            packages = pathlib.Path(folder) / "packages"
            packages.mkdir()
            with zipfile.ZipFile(packages / "crt.whl", "w") as wheel:
                wheel.writestr("nvidia/cu13/include/crt/host_config.h", "")
            code, _, err = run("--build-only", "--python", sys.executable, "--build", "b", "--packages", "packages",
                               "--ucx", "packages/../packages", program=program, **where)
            self.assertEqual((code, "cannot be configured" in err), (2, True), err)
            told = (pathlib.Path(folder) / "b" / "configure.log").read_text()
            self.assertIn(f"/torch/../nvidia/cu13;{folder}/b/packages/nvidia/cu13;/usr/local/cuda\n", told)
            self.assertIn(f"-DCMAKE_PREFIX_PATH={folder}/b/packages/usr\n", told)
            self.assertIn(f"-DDDPRUN_UCX_DIR={folder}/packages\n", told)

    def test_headers_of_two_cudas_are_not_mixed(self):
        with tempfile.TemporaryDirectory() as folder:
            def missing(number):
                for name, header, cuda in [("torch", "cuda_runtime.h", 13000), ("system", "crt/host_config.h", number)]:
                    include = pathlib.Path(folder) / name / "include"
                    (include / header).parent.mkdir(parents=True, exist_ok=True)
                    (include / header).touch()
                    (include / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION  {cuda}\n")
                done = subprocess.run(["cmake", f"-DDDPRUN_CUDA_DIR={folder}/torch;{folder}/system", "-P",
                                       HERE.parents[1] / "cmake" / "DdprunNccl.cmake"], capture_output=True, text=True)
                return done.stdout + done.stderr

            self.assertIn("no include/cccl/nv/target in", missing(13000))
            told = missing(12080)
            self.assertIn(f"left out {folder}/system, which is of CUDA 12080", told)
            self.assertIn("no include/crt/host_config.h in", told)

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
                subprocess.check_call([HERE / "unpack", packages, unpacked, sys.executable])
                there = unpacked / "usr/lib/any"
                self.assertTrue((there / "libz.so.1").samefile(there / "libz.so.1.2"))
                self.assertEqual(os.readlink(there / "libz.so"), "libz.so.1.2")
                self.assertEqual(os.readlink(there / "other"), "/etc/not-of-a-package")


unittest.main()
