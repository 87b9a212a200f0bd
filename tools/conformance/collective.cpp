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

// The buffers of a collective on one rank, and their content before it. In place, the first one holds both.
class Buffers {
 public:
  Buffers(const tools::BufferMemory& memory, const TestCall& what, int rank, int size)
      : what_(what),
        block_(static_cast<std::size_t>(rank) * block_bytes()),
        send_bytes_(block_bytes() * (what.kind == Kind::reduce_scatter ? size : 1)),
        recv_bytes_(block_bytes() * (what.kind == Kind::allgather ? size : 1)),
        first_(memory, what.in_place ? std::max(send_bytes_, recv_bytes_) : send_bytes_, shift()),
        second_(memory, what.in_place ? 0 : recv_bytes_, shift()) {}

  std::size_t send_count() const { return send_bytes_ / size_of(what_.dtype); }
  std::size_t recv_count() const { return recv_bytes() / size_of(what_.dtype); }
  std::size_t recv_bytes() const { return recv_bytes_; }
  unsigned char* send() { return first_.data() + send_at(); }
  unsigned char* recv() { return (what_.in_place ? first_ : second_).data() + recv_at(); }

  // The same buffers, for a backend.
  void* send_memory() const { return first_.at(send_at()); }
  void* recv_memory() const { return (what_.in_place ? first_ : second_).at(recv_at()); }

  // To be called before the collective, and after it.
  void put() {
    before_ = first_.copy();
    first_.put();
    second_.put();
  }
  void get() {
    first_.get();
    second_.get();
  }
  // Fills both with other numbers, and later says whether something else has written there.
  void overwrite() {
    for (Buffer* one : {&first_, &second_}) std::fill_n(one->data(), one->bytes(), kOther);
    put();
    other_ = second_.copy();
  }
  std::string fault_after_overwrite() {
    get();
    return first_.holds(before_) && second_.holds(other_) ? "" : "wrote into a buffer after wait had returned";
  }
  std::string fault() const {
    if (!first_.intact() || !second_.intact()) return "wrote outside the buffers";
    if (!what_.in_place && !first_.holds(before_)) return "changed send";
    if (what_.in_place && what_.kind == Kind::reduce_scatter && !holds_other_blocks()) {
      return "changed a block of send that is not recv";
    }
    return "";
  }

 private:
  bool holds_other_blocks() const {
    auto now = first_.copy();
    const auto own = static_cast<std::ptrdiff_t>(block_);
    std::copy_n(before_.begin() + own, block_bytes(), now.begin() + own);
    return now == before_;
  }

  static constexpr unsigned char kOther = 0x3C;

  std::size_t block_bytes() const { return what_.count * size_of(what_.dtype); }
  // Out of place, both start one element after a cache line.
  std::size_t shift() const { return what_.in_place ? 0 : size_of(what_.dtype); }
  std::size_t send_at() const { return what_.in_place && what_.kind == Kind::allgather ? block_ : 0; }
  std::size_t recv_at() const { return what_.in_place && what_.kind == Kind::reduce_scatter ? block_ : 0; }

  TestCall what_;
  std::size_t block_;  // where this rank's block begins
  std::size_t send_bytes_;
  std::size_t recv_bytes_;
  Buffer first_;
  Buffer second_;
  std::vector<unsigned char> before_;
  std::vector<unsigned char> other_;
};

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
    default: return {contribution(what.dtype, what.op, seed, what.root, index), 0};
  }
}

Work start(Context& context, CommBackend& backend, const TestCall& what, Buffers& buffers) {
  Collective call =
      context.memory().call(buffers.send_memory(), buffers.recv_memory(), what.count, what.dtype, what.op);
  call.root = what.root;
  return comm::start(backend, what.kind, call);
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

}  // namespace

TestCall common_call(const Settings& settings, const std::string& algorithm, std::size_t count) {
  return {.dtype = common_dtype(settings, algorithm), .op = common_op(settings, algorithm), .count = count};
}

std::vector<TestCall> calls_of_each_kind(const Settings& settings, const TestCall& like) {
  std::vector<TestCall> calls;
  for (const Kind kind : {Kind::allreduce, Kind::broadcast, Kind::allgather, Kind::reduce_scatter}) {
    if (kind == Kind::reduce_scatter && !settings.capabilities.reduce_scatter) continue;
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

Reduced::Reduced(Context& context, const TestCall& what, void* own)
    : context_(context), what_(what), buffer_(context.memory(), what.count * size_of(what.dtype), 0, own) {}

void Reduced::fill(uint64_t seed) {
  seed_ = seed;
  conformance::fill(what_.dtype, what_.op, seed, context_.rank(), 0, what_.count, buffer_.data());
  buffer_.put();
}

Work Reduced::start(CommBackend& backend) const {
  return backend.allreduce(context_.memory().call(buffer_.at(0), buffer_.at(0), what_.count, what_.dtype, what_.op));
}

std::string Reduced::fault() {
  buffer_.get();
  return fault_of(context_, what_, seed_, buffer_.data(), what_.count);
}

std::string describe(const TestCall& what) {
  if (what.kind == Kind::barrier) return "";
  std::string text = name_of(what.dtype);
  if (what.kind == Kind::allreduce || what.kind == Kind::reduce_scatter) text += std::string(" ") + name_of(what.op);
  if (what.kind == Kind::broadcast) text += " root " + std::to_string(what.root);
  text += " count " + std::to_string(what.count);
  if (what.kind != Kind::broadcast) text += what.in_place ? " in place" : " out of place";
  return text;
}

Checked run_checked(Context& context, CommBackend& backend, const TestCall& what, uint64_t seed, Context* same) {
  const int rank = context.rank();
  TestCall in_form = what;
  in_form.in_place |= what.kind == Kind::broadcast;  // it has one buffer
  Buffers buffers(context.memory(), in_form, rank, context.size());
  if (what.kind != Kind::broadcast || rank == what.root) {
    fill(what.dtype, what.op, seed, rank, 0, buffers.send_count(), buffers.send());
  }
  buffers.put();

  Checked result;
  result.execution = context.wait(start(context, backend, what, buffers));
  buffers.get();
  std::vector<unsigned char> result_bytes;
  if (what.overwrite_after.count() > 0) {
    result.fault = buffers.fault();
    result_bytes.assign(buffers.recv(), buffers.recv() + buffers.recv_bytes());
    buffers.overwrite();
    std::this_thread::sleep_for(what.overwrite_after);
    if (result.fault.empty()) result.fault = buffers.fault_after_overwrite();
  }
  const unsigned char* const recv = result_bytes.empty() ? buffers.recv() : result_bytes.data();

  const bool same_on_all = same != nullptr && what.kind != Kind::reduce_scatter;
  const bool shared = same_on_all && buffers.recv_count() >= kShared;
  const std::size_t stride = shared ? static_cast<std::size_t>(context.size()) : 1;
  const std::string wrong =
      fault_of(context, what, seed, recv, buffers.recv_count(), shared ? static_cast<std::size_t>(rank) : 0, stride);
  if (!wrong.empty()) result.fault = wrong;
  if (result.fault.empty()) result.fault = buffers.fault();
  if (same_on_all) same->judge_same(what.dtype, recv, buffers.recv_count());
  return result;
}

void run_plain(Context& context, CommBackend& backend, const TestCall& what, milliseconds timeout) {
  Buffers buffers(context.memory(), what, context.rank(), context.size());
  start(context, backend, what, buffers).wait(timeout);
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
