"""Compares the plugin image-folder with torchvision.datasets.ImageFolder and Pillow.

    image_folder_parity.py PLUGIN_DUMP PLUGIN

Classes, order and targets must be equal; PNG bit for bit, resized too; JPEG within 2 of 255, because Pillow brings a
libjpeg-turbo of its own whose version is not the system's. Ends with 0 when all agree, 1 when not, 77 when this Python
lacks one of the two.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import PIL
    import torchvision
    from PIL import Image
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import Compose, Resize, ToTensor
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}; set DDPRUN_PYTHON to a Python with torch, torchvision, numpy and pillow")
    sys.exit(77)

JPEG_LEVELS = 2
RANDOM = numpy.random.default_rng(2026)


def picture(width, height):
    """Smooth colours with some noise: what JPEG is made for."""
    rows, columns = numpy.indices((height, width))
    planes = [120 + 90 * numpy.sin(rows / RANDOM.uniform(3, 9) + columns / RANDOM.uniform(3, 9)) for _ in range(3)]
    noisy = numpy.stack(planes, axis=2) + RANDOM.normal(0, 6, (height, width, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(numpy.uint8))


def with_alpha(image, mode):
    image = image.convert(mode)
    image.putalpha(Image.fromarray(RANDOM.integers(0, 256, (image.height, image.width), numpy.uint8)))
    return image


def write_pngs(folder, size):
    folder.mkdir(parents=True)
    picture(*size).save(folder / "rgb.png")
    picture(*size).save(folder / "RGB2.PNG")
    picture(*size).convert("L").save(folder / "grey.png")
    picture(*size).convert("1").save(folder / "bits.png")
    with_alpha(picture(*size), "RGB").save(folder / "rgba.png")
    with_alpha(picture(*size), "L").save(folder / "la.png")
    picture(*size).quantize(200).save(folder / "palette.png")
    picture(*size).quantize(4).save(folder / "palette4.png")
    picture(*size).quantize(16).save(folder / "transparent.png", transparency=3)
    (folder / "notes.txt").write_text("no picture")
    (folder / "a-b").mkdir()
    (folder / "a" / "c").mkdir(parents=True)
    for name in ("a-b/x.png", "a/y.png", "a/c/z.png"):
        picture(*size).save(folder / name)


def write_jpegs(folder, size):
    folder.mkdir(parents=True)
    for quality in (50, 75, 95):
        for subsampling in (0, 1, 2):
            picture(*size).save(folder / f"q{quality}s{subsampling}.jpg", quality=quality, subsampling=subsampling)
    picture(*size).save(folder / "progressive.JPEG", progressive=True, subsampling=2)
    picture(*size).convert("L").save(folder / "grey.jpeg")
    picture(*size).save(folder / ".jpg", format="JPEG")
    black = picture(*size).convert("L").point(lambda value: value // 3)
    for name, cover in (("cmyk.jpg", None), ("cmyk-black.jpg", black)):
        inks = picture(*size).convert("CMYK").split()
        Image.merge("CMYK", (*inks[:3], cover or inks[3])).save(folder / name, quality=95)
    exif = Image.Exif()
    exif[0x0112] = 6
    picture(*size).save(folder / "turned.jpg", exif=exif)
    # A PNG by its bytes, as data sets of the wild have them.
    picture(*size).save(folder / "not-a.jpg", format="PNG")


def load(mode):
    def loader(path):
        with Image.open(path) as image:
            return image.convert(mode)

    return loader


def ours(arguments, root, options):
    result = subprocess.run([*arguments, str(root), *(f"{key}={value}" for key, value in options.items())],
                            stdout=subprocess.PIPE, timeout=120, check=True)
    return json.loads(result.stdout)


def compare(case, split, folder, levels):
    """Raises AssertionError at the first difference; returns the largest one between pixels, in levels of 255."""
    largest = 0
    assert split["classes"] == folder.classes, f"{case}: classes {split['classes']}, not {folder.classes}"
    assert [target for [target] in split["targets"]] == folder.targets, f"{case}: targets {split['targets']}"
    for index, (expected, _) in enumerate(folder):
        expected = expected.numpy()
        got = numpy.array(split["inputs"][index], numpy.float32).reshape(split["shape"])
        assert got.shape == expected.shape, f"{case}: {folder.samples[index][0]}: {got.shape}, not {expected.shape}"
        apart = float(numpy.abs(got - expected).max()) * 255
        assert apart <= levels + 1e-3 if levels else numpy.array_equal(got, expected), (
            f"{case}: {folder.samples[index][0]}: {apart:.3f} levels apart")
        largest = max(largest, apart)
    return largest


def main():
    with tempfile.TemporaryDirectory() as temporary:
        for kind, write, levels in (("png", write_pngs, 0), ("jpeg", write_jpegs, JPEG_LEVELS)):
            even, uneven = pathlib.Path(temporary, kind, "even"), pathlib.Path(temporary, kind, "uneven")
            for name in ("b", "B", "äpfel", "10", "9"):
                write(even / "train" / name, (37, 29))
                write(uneven / "train" / name, (int(RANDOM.integers(20, 90)), int(RANDOM.integers(20, 90))))
            for root, channels, size in ((even, 3, 0), (even, 1, 0), (uneven, 3, 32), (uneven, 1, 48)):
                mode = "RGB" if channels == 3 else "L"
                steps = [Resize((size, size))] if size else []
                folder = ImageFolder(root / "train", Compose([*steps, ToTensor()]), loader=load(mode))
                split = ours(sys.argv[1:], root, {"channels": channels, "image_size": size})
                case = f"{kind} {mode} {'resized' if size else 'as they are'}"
                try:
                    largest = compare(case, split["train"], folder, levels)
                except AssertionError as difference:
                    print(difference)
                    return 1
                assert split["test"] is None
                print(f"{case}: {len(folder)} pictures agree, {largest:.0f} levels apart at most")
    print(f"compared with torchvision {torchvision.__version__}, Pillow {PIL.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
