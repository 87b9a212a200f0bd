"""Runs a function in two processes, as the ranks of a Gloo group of PyTorch with a timeout of 5 s."""
import multiprocessing
import tempfile
import time
from datetime import timedelta

import torch.distributed as dist


def rank_main(rank, path, function):
    group = dist.ProcessGroupGloo(dist.FileStore(path, 2), rank, 2, timedelta(seconds=5))
    function(rank, group)


def run(function):
    with tempfile.TemporaryDirectory() as folder:
        ranks = [multiprocessing.get_context("fork").Process(target=rank_main, args=(rank, folder + "/store", function)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()


def tell(what, function):
    """Prints how the call ended, and after how long."""
    began = time.monotonic()
    try:
        result = repr(function())
    except Exception as error:
        result = str(error).splitlines()[0]
    print(f"{what}: {result}, after {time.monotonic() - began:.1f} s", flush=True)
