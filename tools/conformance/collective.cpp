#include "tools/conformance/collective.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "base/subprocess.hpp"

namespace ddprun::conformance {
namespace {

// GPU memory of this thread, kept for reuse by its size: freeing would wait for all work on the GPU, also for
// collectives of another communicator, which may wait for a rank that also waits.
std::shared_ptr<void> reused_memory(const tools::BufferMemory& memory, std::size_t bytes) {
  using Pool = std::multimap<std::size_t, std::shared_ptr<void>>;
  thread_local const auto pool = std::make_shared<Pool>();
  const std::size_t size = std::bit_ceil(bytes);
  auto kept = pool->extract(size);
  std::shared_ptr<void> own = kept.empty() ? memory.allocate(size) : std::move(kept.mapped());
  return {own.get(), [into = pool, size, own](void*) { into->emplace(size, own); }};
}

// If all ranks hold the same bits, the ranks divide the check of a large result: each checks
// every `stride`-th element, starting at its own rank.
constexpr std::size_t kShared = 1000;

// The expected value of element `index` of recv on rank `rank`.
Expected expected_at(const TestCall& what, uint64_t seed, int rank, int size, std::size_t index) {
  switch (what.kind) {
    case Kind::allreduce: return reduce(what.dtype, what.op, seed, size, index);
    case Kind::reduce_scatter: {
      return reduce(what.dtype, what.op, seed, size, static_cast<std::size_t>(rank) * what.count + index);
    }
    case Kind::allgather: {
      const int from = static_cast<int>(index / what.count);
      return {contribution(what.dtype, what.op, seed, from, index % what.count), 0};
    }
    case Kind::exchange: {
      int from = 0;
      for (; index >= what.between(from, rank); ++from) index -= what.between(from, rank);
      return {contribution(what.dtype, what.op, seed + static_cast<uint64_t>(rank), from, index), 0};
    }
    default: return {contribution(what.dtype, what.op, seed, what.root, index), 0};
  }
}

// `recv`: the result on this rank. It checks every `stride`-th element from `first` on.
std::string fault_of(Context& context, const TestCall& what, uint64_t seed, const unsigned char* recv,
                     std::size_t count, std::size_t first = 0, std::size_t stride = 1) {
  std::size_t checked = 0, wrong = 0;
  std::string text;
  for (std::size_t i = first; i < count; i += stride, ++checked) {
    const Expected expected = expected_at(what, seed, context.rank(), context.size(), i);
    const Value got = load(what.dtype, recv, i);
    if (accepts(what.dtype, expected, got) || wrong++ > 0) continue;
    text = "element " + std::to_string(i) + ": expected " + to_text(what.dtype, expected.value);
    if (expected.bound > 0) text += " (off by at most " + to_text(DType::float64, {expected.bound, 0}) + ")";
    text += ", got " + to_text(what.dtype, got);
  }
  if (wrong == 0) return "";
  return text + "; wrong are " + std::to_string(wrong) + " of " + std::to_string(checked) + " elements";
}

// In the only form that its kind has: a broadcast has one buffer, an exchange two.
TestCall in_form(TestCall what) {
  what.in_place = what.kind == Kind::broadcast || (what.in_place && what.kind != Kind::exchange);
  return what;
}

}  // namespace

TestCall common_call(const Settings& settings, const std::string& algorithm, std::size_t count) {
  return {.dtype = common_dtype(settings, algorithm), .op = common_op(settings, algorithm), .count = count};
}

std::vector<TestCall> calls_of_each_kind(const Settings& settings, const TestCall& like) {
  std::vector<TestCall> calls;
  const Capabilities& can = settings.capabilities;
  for (const Kind kind : {Kind::allreduce, Kind::broadcast, Kind::allgather, Kind::reduce_scatter, Kind::exchange}) {
    if ((kind == Kind::reduce_scatter && !can.reduce_scatter) || (kind == Kind::exchange && !can.exchange)) continue;
    calls.push_back(like);
    calls.back().kind = kind;
  }
  return calls;
}

Buffer::Buffer(const tools::BufferMemory& memory, std::size_t bytes, std::size_t shift, void* own)
    : Guarded(bytes, shift), memory_(memory), copied_(bytes), image_(static_cast<unsigned char*>(own)) {
  constexpr std::size_t kLine = 64;
  if (own != nullptr) return;
  margin_ = data() - whole();
  copied_ = whole_bytes();
  image_ = data();
  if (memory.kind() == Memory::host) return;
  on_gpu_ = reused_memory(memory, copied_ + kLine);
  image_ = static_cast<unsigned char*>(on_gpu_.get()) + reinterpret_cast<std::uintptr_t>(whole()) % kLine + margin_;
}

Buffers::Buffers(Context& context, const TestCall& what, void* own)
    : context_(context),
      what_(in_form(what)),
      counts_(counts_of(context, what)),
      block_(static_cast<std::size_t>(context.rank()) * block_bytes()),
      first_(context.memory(), std::max(counts_.send, what_.in_place ? counts_.recv : 0) * size_of(what.dtype), shift(),
             own),
      second_(context.memory(), what_.in_place ? 0 : counts_.recv * size_of(what.dtype), shift()) {}

void Buffers::put() {
  before_ = first_.copy();
  first_.put();
  second_.put();
}

void Buffers::fill(uint64_t seed) {
  seed_ = seed;
  const auto [kind, dtype, op, root] = std::tuple(what_.kind, what_.dtype, what_.op, what_.root);
  const int rank = context_.rank();
  unsigned char* at = first_.data() + send_at();
  for (int to = 0; kind == Kind::exchange && to < context_.size(); ++to) {
    conformance::fill(dtype, op, seed + static_cast<uint64_t>(to), rank, 0, what_.between(rank, to), at);
    at += what_.between(rank, to) * size_of(dtype);
  }
  if (kind != Kind::exchange && (kind != Kind::broadcast || rank == root)) {
    conformance::fill(dtype, op, seed, rank, 0, counts_.send, at);
  }
  put();
}

Work Buffers::start(CommBackend& backend) const {
  void* const recv = (what_.in_place ? first_ : second_).at(recv_at());
  Collective call = context_.memory().call(first_.at(send_at()), recv, what_.count, what_.dtype, what_.op);
  call.root = what_.root;
  return conformance::start(backend, what_, call);
}

std::string Buffers::fault(bool divided) {
  first_.get();
  second_.get();
  const bool shared = divided && recv_count() >= kShared;
  const std::size_t first = shared ? static_cast<std::size_t>(context_.rank()) : 0;
  const std::size_t stride = shared ? static_cast<std::size_t>(context_.size()) : 1;
  const std::string wrong = fault_of(context_, what_, seed_, recv(), recv_count(), first, stride);
  return wrong.empty() ? fault_around() : wrong;
}

std::string Buffers::fault_around() const {
  if (!first_.intact() || !second_.intact()) return "wrote outside the buffers";
  if (!what_.in_place && !first_.holds(before_)) return "changed send";
  if (!what_.in_place || what_.kind != Kind::reduce_scatter) return "";
  auto now = first_.copy();
  const auto own = static_cast<std::ptrdiff_t>(block_);
  std::copy_n(before_.begin() + own, block_bytes(), now.begin() + own);
  return now == before_ ? "" : "changed a block of send that is not recv";
}

std::string Buffers::fault_after_overwrite(milliseconds meanwhile) {
  constexpr unsigned char kOther = 0x3C;
  for (Buffer* one : {&first_, &second_}) std::fill_n(one->data(), one->bytes(), kOther);
  put();
  const auto other = second_.copy();
  std::this_thread::sleep_for(meanwhile);
  first_.get();
  second_.get();
  return first_.holds(before_) && second_.holds(other) ? "" : "wrote into a buffer after wait had returned";
}

Counts counts_of(const Context& context, const TestCall& what) {
  const auto ranks = static_cast<std::size_t>(context.size());
  if (what.kind != Kind::exchange) {
    return {what.kind == Kind::reduce_scatter ? what.count * ranks : what.count,
            what.kind == Kind::allgather ? what.count * ranks : what.count};
  }
  Counts all{0, 0};
  for (int peer = 0; peer < context.size(); ++peer) {
    all.send += what.between(context.rank(), peer);
    all.recv += what.between(peer, context.rank());
  }
  return all;
}

Work start(CommBackend& backend, const TestCall& what, const Collective& call) {
  if (what.kind != Kind::exchange) return comm::start(backend, what.kind, call);
  std::vector<Block> send, recv;
  const auto add = [&](std::vector<Block>& blocks, char*& at, std::size_t count) {
    blocks.push_back({count > 0 ? at : nullptr, count * size_of(what.dtype)});
    at += blocks.back().bytes;
  };
  char *out = static_cast<char*>(const_cast<void*>(call.send)), *in = static_cast<char*>(call.recv);
  for (int peer = 0; peer < backend.size(); ++peer) {
    add(send, out, what.between(backend.rank(), peer));
    add(recv, in, what.between(peer, backend.rank()));
  }
  return backend.exchange({send, recv, call.memory, call.stream});
}

std::string describe(const TestCall& what) {
  if (what.kind == Kind::barrier) return "";
  std::string text = name_of(what.dtype);
  if (comm::reduces(what.kind)) text += std::string(" ") + name_of(what.op);
  if (what.kind == Kind::broadcast) text += " root " + std::to_string(what.root);
  text += " count " + std::to_string(what.count);
  if (what.kind != Kind::broadcast && what.kind != Kind::exchange)
    text += what.in_place ? " in place" : " out of place";
  return text;
}

Checked run_checked(Context& context, CommBackend& backend, const TestCall& what, uint64_t seed, Context* same) {
  Buffers buffers(context, what);
  buffers.fill(seed);
  Checked result;
  result.execution = buffers.run(backend);
  const bool same_on_all = same != nullptr && what.kind != Kind::reduce_scatter && what.kind != Kind::exchange;
  result.fault = buffers.fault(same_on_all);
  if (same_on_all) same->judge_same(what.dtype, buffers.recv(), buffers.recv_count());
  if (what.overwrite_after.count() > 0) {
    const std::string later = buffers.fault_after_overwrite(what.overwrite_after);
    if (result.fault.empty()) result.fault = later;
  }
  return result;
}

void run_plain(Context& context, CommBackend& backend, const TestCall& what, milliseconds timeout) {
  Buffers(context, what).start(backend).wait(timeout);
  // On a stream nothing has run yet: the barrier reports the result.
  if (context.settings().capabilities.stream_ordered) backend.barrier().wait(timeout);
}

bool is_done_within(milliseconds limit, Work& work) {
  const auto give_up = Clock::now() + limit;
  bool done = work.test();
  for (; !done && Clock::now() < give_up; done = work.test()) std::this_thread::yield();
  return done;
}

End end_of(const std::function<void()>& call) {
  End end;
  const auto start = Clock::now();
  try {
    call();
  } catch (...) {
    const Error error = current_error();
    end = {true, error.code(), error.what()};
  }
  end.took = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  return end;
}

End end_of(Context& context, CommBackend& backend, const TestCall& what) {
  return end_of([&] { run_plain(context, backend, what, context.settings().deadline); });
}

}  // namespace ddprun::conformance
