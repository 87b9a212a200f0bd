"""Compares ddprun/plugin/image_transform.hpp with the installed Pillow, torchvision and torch.

Usage: image_parity.py IMAGE_DUMP. Samples must bitwise equal Resize(PIL), ToTensor, Normalize. Exit code: 0 if all agree, 1
at the first case that does not, 77 if this Python lacks one of the three.
"""

import subprocess
import sys

try:
    import numpy
    import PIL
    import torch
    import torchvision
    from PIL import Image
    from torchvision.transforms import Compose, Normalize, Resize, ToTensor
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}; set DDPRUN_PYTHON to a Python with torch, torchvision, numpy, pillow")
    sys.exit(77)

# (height, width) of the image, and its size after resizing.
SIZES = [((32, 32), 224), ((32, 32), 32), ((32, 32), 17), ((32, 32), 31), ((32, 32), 33), ((224, 224), 32),
         ((1, 1), 1), ((1, 1), 5), ((1, 1), 224), ((2, 2), 1), ((2, 3), 7), ((5, 300), 64), ((300, 5), 64),
         ((1, 100), 10), ((100, 1), 10), ((64, 50), 64), ((50, 64), 64), ((28, 28), 224), ((375, 500), 224),
         ((1200, 1600), 224), ((999, 3), 2), ((7, 4001), 3)]

NORMALISATIONS = [([0.0], [1.0]), ([0.5], [0.5]), ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
                  ([-3.0], [1e-3])]


# Before version 13, Pillow did not resize columns first if it loses far more height than width.
ANY_ORDER = int(PIL.__version__.split(".")[0]) >= 13


def columns_first(height, width, size):
    return size < height and height - size > 2 * (width - size)


def pictures(height, width, channels, random):
    shape = (height, width, channels)
    yield random.integers(0, 256, shape, numpy.uint8)
    yield random.integers(0, 2, shape, numpy.uint8) * numpy.uint8(255)
    yield numpy.full(shape, 255, numpy.uint8)
    yield numpy.full(shape, 127, numpy.uint8)
    ramp = numpy.linspace(0, 255, width).astype(numpy.uint8)
    yield numpy.broadcast_to(ramp[None, :, None], shape).copy()
    checks = (numpy.indices((height, width)).sum(0) % 2 * 255).astype(numpy.uint8)
    yield numpy.broadcast_to(checks[:, :, None], shape).copy()


def all_cases(random):
    sizes = list(SIZES)
    for _ in range(150):
        height, width = (int(extent) for extent in random.integers(1, 120, 2))
        sizes.append(((height, width), int(random.integers(1, 150))))
    for number, ((height, width), size) in enumerate(sizes):
        for channels in (1, 3):
            for picture in pictures(height, width, channels, random):
                mean, std = NORMALISATIONS[number % len(NORMALISATIONS)]
                if len(mean) > channels:
                    mean, std = mean[:1], std[:1]
                if ANY_ORDER or not columns_first(height, width, size):
                    yield picture, size, mean, std


def reference(picture, size, mean, std):
    channels = picture.shape[2]
    image = Image.fromarray(picture[:, :, 0] if channels == 1 else picture)
    normalise = Normalize(mean * (channels // len(mean)), std * (channels // len(std)))
    return Compose([Resize((size, size)), ToTensor(), normalise])(image)


def sample_of(dump, picture, size, mean, std):
    height, width, channels = picture.shape
    numbers = [",".join(map(repr, values)) for values in (mean, std)]
    dump.stdin.write((" ".join(map(str, [size, channels, height, width, *numbers])) + "\n").encode())
    dump.stdin.write(picture.transpose(2, 0, 1).tobytes())
    dump.stdin.flush()
    data = dump.stdout.read(4 * channels * size * size)
    return torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(channels, size, size)


def main():
    torch.set_num_threads(1)
    random = numpy.random.default_rng(2026)
    count = 0
    with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dump:
        for case in all_cases(random):
            picture, size, mean, std = case
            actual, expected = sample_of(dump, *case), reference(*case)
            count += 1
            if not torch.equal(actual, expected):
                difference = (actual.double() - expected.double()).abs().max().item()
                print(f"{picture.shape} to {size}, mean {mean}, std {std}: differ by up to {difference:.3g}")
                return 1
    if dump.returncode != 0:
        print(f"{sys.argv[1]} ended with {dump.returncode}")
        return 1
    print(f"{count} cases equal to Pillow {PIL.__version__}, torchvision {torchvision.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
