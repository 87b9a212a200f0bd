"""When DDP's buckets of gradients are full, in one step of a recorded program. `ddprun predict` needs it."""
import time

STEPS = (4, 6, 8)  # are traced; DDP divides the gradients into its final buckets in the second or third step


class BucketTrace:
    """Hooks on the parameters of a DDP module on CPUs, from its forward until end(). Times are in seconds."""

    def __init__(self, module):
        self.module = module
        self.ready = {}       # time at which each gradient was ready, by the number of its parameter
        self.backwards = []   # begin and end of each backward
        trained = [one for one in module.module.parameters() if one.requires_grad]
        self.handles = [one.register_post_accumulate_grad_hook(self.noting(number))
                        for number, one in enumerate(trained)]
        self.bytes = [one.numel() * one.element_size() for one in trained]

    def noting(self, number):
        def note(_):
            self.ready[number] = time.perf_counter()
        return note

    def backward_begins(self):
        self.ready.clear()
        self.backwards.append([time.perf_counter(), None])

    def gradients_done(self):
        self.backwards[-1][1] = time.perf_counter()

    def end(self, step):
        """Removes the hooks, and returns the events of this step for trace.json (docs/reports.md). Returns none if
        DDP has not given its buckets, or a gradient of them was not computed."""
        for handle in self.handles:
            handle.remove()
        about = self.module._get_ddp_logging_data()
        buckets = [[int(number) for number in one.split()]
                   for one in (about.get("rebuilt_per_bucket_param_indices") or "").split(",")]
        if not all(buckets) or {number for one in buckets for number in one} != set(self.ready):
            return []
        if not self.backwards or None in (end for _, end in self.backwards):
            return []
        spans = [("backward", begin, end, {}) for begin, end in self.backwards]
        for number, bucket in enumerate(buckets):
            full = max(self.ready[one] for one in bucket)
            spans.append(("ready", full, full, {"bucket": number, "bytes": sum(self.bytes[one] for one in bucket)}))
        return [{"name": name, "ph": "X", "pid": 0, "tid": 0, "ts": begin * 1e6, "dur": (end - begin) * 1e6,
                 "args": {"step": step, **args}} for name, begin, end, args in spans]
