"""Compares core/data's samplers with the installed PyTorch, index for index.

Usage: sampler_parity.py SAMPLER_DUMP [--huge]. Exit code: 0 if all agree, 1 at the first case that does not, 77 if this
Python has no torch. --huge adds a data set so large that PyTorch draws 64 bits for each swap (8 GB, some minutes).
"""

import itertools
import random
import subprocess
import sys

try:
    import torch
    from torch.utils.data import DistributedSampler, random_split
except ImportError as error:
    print(f"skipped: {sys.executable}: {error}; set DDPRUN_PYTHON to a Python with torch")
    sys.exit(77)

WIDE_FROM = (2**32 - 1) // 20


def distributed(size, world, rank, seed, epoch, shuffle, drop):
    sampler = DistributedSampler(range(size), world, rank, bool(shuffle), seed, bool(drop))
    sampler.set_epoch(epoch)
    return torch.tensor(list(sampler), dtype=torch.int64)


def whole(size, seed, epoch):
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed + epoch))


def split(size, part, seed):
    parts = [1 - part, part] if part < 1 else [size - part, part]
    subsets = random_split(range(size), parts, torch.Generator().manual_seed(seed))
    assert len(subsets[1]) == (int(size * part) if part < 1 else part)
    return torch.tensor([index for subset in subsets for index in subset], dtype=torch.int64)


REFERENCES = {"distributed": distributed, "random": whole, "split": split}


def all_cases():
    sizes = [0, 1, 2, 3, 5, 7, 8, 16, 97, 100, 1000]
    for size, world, shuffle, drop in itertools.product(sizes, [1, 2, 3, 4, 8, 13], [0, 1], [0, 1]):
        for rank in range(world):
            yield "distributed", size, world, rank, 42, 0, shuffle, drop
    seeds = [0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**40, 2**63 - 1, 2**63, 2**64 - 100]
    for seed, epoch in itertools.product(seeds, [0, 1, 99]):
        yield "distributed", 101, 3, 2, seed, epoch, 1, 0
        yield "random", 101, seed, epoch
    for size in [0, 1, 2, 10_000, 60_000, 1_281_167]:
        yield "random", size, 42, 3
    for size, part, seed in itertools.product([10, 101, 60_000], [1, 7, 0.1, 0.29, 0.5, 0.9], [0, 42, 2**40]):
        yield "split", size, part, seed
    yield "distributed", 60_000, 7, 6, 42, 5, 1, 0
    yield "distributed", 1_281_167, 8, 7, 42, 5, 1, 1
    choice = random.Random(2026)
    for _ in range(1000):
        world = choice.randint(1, 70)
        yield ("distributed", choice.randint(0, 300), world, choice.randrange(world), choice.randrange(2**64 - 2**20),
               choice.randrange(2**20), choice.randrange(2), choice.randrange(2))


def read_answer(stream):
    count = int.from_bytes(stream.read(8), sys.byteorder, signed=True)
    if count == 0:
        return torch.empty(0, dtype=torch.int64)
    return torch.frombuffer(bytearray(stream.read(8 * count)), dtype=torch.int64)


def main():
    cases = list(all_cases())
    if "--huge" in sys.argv[2:]:
        cases += [("random", WIDE_FROM - 1, 42, 0), ("random", WIDE_FROM, 42, 0)]
    with subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dump:
        for kind, *numbers in cases:
            dump.stdin.write((" ".join(map(str, [kind, *numbers])) + "\n").encode())
            dump.stdin.flush()
            actual = read_answer(dump.stdout)
            expected = REFERENCES[kind](*numbers)
            if not torch.equal(actual, expected):
                print(f"{kind} {numbers}: PyTorch {expected.tolist()[:20]}, ddprun {actual.tolist()[:20]} (first 20)")
                return 1
    if dump.returncode != 0:
        print(f"{sys.argv[1]} ended with {dump.returncode}")
        return 1
    print(f"{len(cases)} cases agree with PyTorch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
