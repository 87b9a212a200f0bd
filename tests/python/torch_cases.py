"""The cases of PyTorch's own suite that do not pass over ddprun's backends, with the reason. docs/pytorch.md explains
them."""
_ANY_SOURCE = "recv() without a source is not supported"
_WORDS = "it looks for Gloo's words in the message of a timeout"

_KNOWN = {
    "test_barrier_timeout_full_group": _WORDS,
    "test_barrier_timeout_global": _WORDS,
    "test_barrier_timeout_group": _WORDS,
    "test_ddp_logging_data_cpu": "it compares the name of the backend with \"gloo\"",
    "test_monitored_barrier_gloo": "torch.distributed.monitored_barrier refuses backends that are not named gloo",
    "test_monitored_barrier_gloo_subgroup": "torch.distributed.monitored_barrier refuses backends that are not named gloo",
    "test_send_recv_any_source": _ANY_SOURCE,
    "test_send_recv_any_source_autograd_profiler": _ANY_SOURCE,
    "test_send_recv_any_source_torch_profiler": _ANY_SOURCE,
    "test_sparse_all_reduce_sum": "sparse tensors are not supported",
}


# PyTorch 2.15 lets every backend have a monitored barrier.
_SINCE_2_15 = ("test_monitored_barrier_gloo", "test_monitored_barrier_gloo_subgroup")


def known(plugin, ranks, version):
    if plugin == "torch":
        return {}
    passing = _SINCE_2_15 if tuple(map(int, version.split(".")[:2])) >= (2, 15) else ()
    return {name: reason for name, reason in _KNOWN.items() if name not in passing}
