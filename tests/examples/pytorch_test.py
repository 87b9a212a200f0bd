"""The programs of examples/pytorch over ddprun's backends, with two ranks each, and how they read their data.

    pytorch_test.py --source SOURCE --package FOLDER [--data FOLDER]

Not over PyTorch's Gloo: on a busy machine, its threads can abort a program at its end (pull request 179291 of pytorch/pytorch).
"""

import argparse
import gzip
import importlib.util
import os
import pathlib
import re
import struct
import sys
import tempfile
import unittest

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, type=pathlib.Path)
parser.add_argument("--package", required=True, help="the folder with ddprun's Python package")
parser.add_argument("--data", help="a folder with mnist/*.gz")
ARGS = parser.parse_args()
if importlib.util.find_spec("torch") is None:
    print(f"skipped: {sys.executable} has no torch; set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)

EXAMPLES = ARGS.source / "examples" / "pytorch"
sys.path[:0] = [str(EXAMPLES), str(ARGS.source / "bench")]
import data  # noqa: E402
from running import Failed, run  # noqa: E402

LIMIT = 240  # seconds; Torch starts slowly on a busy machine
MNIST_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")


def train(program, backend, *words):
    """The stdout of two ranks. They end with the call. Raises Failed."""
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "PYTHONPATH": ARGS.package}
    return run([sys.executable, "-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
                "--nproc-per-node=2", EXAMPLES / program, "--backend", backend, *words], LIMIT, env=environment)


def losses(out):
    return [float(loss) for loss in re.findall(r"^epoch \d+: loss ([\d.]+); \d+ steps, median [\d.]+ ms$", out, re.M)]


def idx(shape, values, magic=None):
    return struct.pack(f">{1 + len(shape)}I", magic or 0x800 + len(shape), *shape) + bytes(values)


class Training(unittest.TestCase):
    def test_linear_finds_the_line(self):
        out = train("linear.py", "ddprun_shm", "--epochs", "2")
        first, second = losses(out)
        self.assertLess(second, first)
        self.assertLess(second, 0.012)  # the noise's variance is 0.01
        slope, intercept = re.search(r"^y = ([\d.]+)x \+ ([\d.]+)$", out, re.M).groups()
        self.assertAlmostEqual(float(slope), 2, delta=0.02)
        self.assertAlmostEqual(float(intercept), 3, delta=0.02)

    def test_mnist_learns_within_a_few_steps(self):
        folder = pathlib.Path(ARGS.data or "", "mnist")
        if not ARGS.data or not all((folder / name).exists() for name in MNIST_FILES):
            self.skipTest(f"no mnist/*.gz in '{ARGS.data or ''}'; set DDPRUN_TEST_DATA to a folder that has them")
        first, second = losses(train("mnist.py", "ddprun_shm", "--data", folder, "--epochs", "2", "--steps", "30"))
        self.assertLess(second, first)

    def test_cifar10_trains_resnet18(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "data_batch_1.bin").write_bytes(bytes(
                value for label in range(8) for value in [label, *(7 * label + i & 255 for i in range(3072))]))
            out = train("cifar10.py", "ddprun_gloo", "--data", folder, "--size", "32", "--batch-size", "2", "--epochs",
                        "1")
            self.assertEqual(len(losses(out)), 1, out)

    def test_a_backend_that_is_absent_is_one_line(self):
        with self.assertRaisesRegex(Failed, r"\nlinear\.py: --backend nobody: this Torch has no such backend\n"):
            train("linear.py", "nobody")


class Data(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refuses(self, read, pattern):
        with self.assertRaisesRegex(SystemExit, pattern) as refused:
            read(self.folder)
        self.assertNotIn("\n", str(refused.exception))

    def test_mnist_is_normalized(self):
        (self.folder / "train-images-idx3-ubyte").write_bytes(idx((2, 1, 2), (0, 255, 51, 0)))
        with gzip.open(self.folder / "train-labels-idx1-ubyte.gz", "wb") as file:
            file.write(idx((2,), (7, 3)))
        images = data.mnist(self.folder)
        self.assertEqual(len(images), 2)
        image, label = images[1]
        self.assertEqual((list(image.shape), label.item()), ([1, 1, 2], 3))
        self.assertAlmostEqual(image[0, 0, 0].item(), (51 / 255 - 0.1307) / 0.3081, places=5)

    def test_a_wrong_idx_file_is_one_line(self):
        self.refuses(data.mnist, "found neither train-images-idx3-ubyte nor .*--data names the folder")
        path = self.folder / "train-images-idx3-ubyte"
        for content in (b"", b"abc", idx((2, 1, 2), (0, 1, 2)), idx((1, 1, 1), (0,), magic=0x801)):
            path.write_bytes(content)
            self.refuses(data.mnist, "ubyte: expected an IDX file of bytes with 3 sizes")
        path.rename(path.with_name(path.name + ".gz"))
        self.refuses(data.mnist, r"ubyte\.gz: Not a gzipped file")

    def test_mnist_needs_a_label_for_each_image(self):
        (self.folder / "train-images-idx3-ubyte").write_bytes(idx((2, 1, 1), (0, 1)))
        (self.folder / "train-labels-idx1-ubyte").write_bytes(idx((1,), (1,)))
        self.refuses(data.mnist, "2 images, but 1 labels")

    def test_cifar10_joins_its_batches(self):
        below = self.folder / "cifar-10-batches-bin"
        below.mkdir()
        for number in (1, 2):
            (below / f"data_batch_{number}.bin").write_bytes(bytes([number] + [number] * 3072))
        images = data.cifar10(self.folder)
        self.assertEqual([images[i][1].item() for i in range(len(images))], [1, 2])
        self.assertEqual(list(images[0][0].shape), [3, 32, 32])
        self.assertAlmostEqual(images[1][0][2, 5, 5].item(), (2 / 255 - 0.4465) / 0.2616, places=5)
        (below / "data_batch_2.bin").write_bytes(bytes(3074))
        self.refuses(data.cifar10, "data_batch_2.bin: expected records of 3073 bytes, but the file has 3074 bytes")


result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
for test, reason in result.skipped:
    print(f"skipped: {test}: {reason}")
sys.exit(0 if result.wasSuccessful() else 1)
