"""Reads MNIST and CIFAR-10 from their published files, plain or .gz. `ddprun data fetch` gets them."""

import gzip
import pathlib
import struct

import torch
from torch.utils.data import Dataset
from training import stop

CIFAR10_RECORD = 1 + 3 * 32 * 32  # bytes: the label, then the pixels


class Images(Dataset):
    """Keeps bytes. A sample is an image of floats, normalized per channel, and its label."""

    def __init__(self, pixels, labels, means, deviations):
        """`pixels`: uint8, [samples, channels, height, width]."""
        self.pixels, self.labels = pixels, labels.long()
        self.means, self.deviations = (torch.tensor(values).view(-1, 1, 1) for values in (means, deviations))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return (self.pixels[index] / 255 - self.means) / self.deviations, self.labels[index]


def find(folders, pattern):
    """The files of this pattern in the first folder that has some, plain or .gz."""
    for folder in folders:
        if found := sorted(folder.glob(pattern)) or sorted(folder.glob(pattern + ".gz")):
            return found
    return stop(f"found neither {pattern} nor {pattern}.gz in {' or '.join(map(str, folders))}; "
                "\"ddprun data fetch\" gets the files, and --data names the folder")


def read(path):
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            return bytearray(file.read())
    except (OSError, EOFError) as error:
        return stop(f"{path}: {error}")


def read_idx(folders, name, extents):
    """The bytes of an IDX file: a magic number, then `extents` sizes, then the values."""
    [path] = find(folders, name)
    content = read(path)
    header = 4 * (1 + extents)
    magic, *shape = struct.unpack_from(f">{1 + extents}I", content.ljust(header))
    if magic != 0x800 + extents or len(content) != header + torch.Size(shape).numel():
        stop(f"{path}: expected an IDX file of bytes with {extents} sizes, and as many values as they say")
    return torch.frombuffer(content, dtype=torch.uint8, offset=header).view(shape)


def mnist(folder):
    """The training images of MNIST. `folder` may also be one that torchvision has filled."""
    folders = [pathlib.Path(folder), pathlib.Path(folder) / "MNIST" / "raw"]
    pixels = read_idx(folders, "train-images-idx3-ubyte", 3)
    labels = read_idx(folders, "train-labels-idx1-ubyte", 1)
    if len(pixels) != len(labels):
        stop(f"{folder}: {len(pixels)} images, but {len(labels)} labels")
    return Images(pixels.unsqueeze(1), labels, [0.1307], [0.3081])


def cifar10(folder):
    """The training images of CIFAR-10, out of the batches of the binary version that are there."""
    batches = []
    for path in find([pathlib.Path(folder), pathlib.Path(folder) / "cifar-10-batches-bin"], "data_batch_?.bin"):
        content = read(path)
        if not content or len(content) % CIFAR10_RECORD:
            stop(f"{path}: expected records of {CIFAR10_RECORD} bytes, but the file has {len(content)} bytes")
        batches.append(torch.frombuffer(content, dtype=torch.uint8).view(-1, CIFAR10_RECORD))
    records = torch.cat(batches)
    return Images(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], [0.4914, 0.4822, 0.4465],
                  [0.2470, 0.2435, 0.2616])
