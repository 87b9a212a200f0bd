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
    case Kind::allgather:
    case Kind::exchange: {
      const int from = static_cast<int>(index / what.count);
      const std::size_t first = what.kind == Kind::exchange ? static_cast<std::size_t>(rank) * what.count : 0;
      return {contribution(what.dtype, what.op, seed, from, first + index % what.count), 0};
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
  for (const auto& [kind, has] : {std::pair(Kind::allreduce, true),
                                  {Kind::broadcast, true},
                                  {Kind::allgather, true},
                                  {Kind::reduce_scatter, can.reduce_scatter},
                                  {Kind::exchange, can.exchange}}) {
    if (!has) continue;
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
      block_(static_cast<std::size_t>(context.rank()) * block_bytes()),
      send_bytes_(block_bytes() * (sends_blocks(what.kind) ? static_cast<std::size_t>(context.size()) : 1)),
      recv_bytes_(block_bytes() * (gets_blocks(what.kind) ? static_cast<std::size_t>(context.size()) : 1)),
      first_(context.memory(), what_.in_place ? std::max(send_bytes_, recv_bytes_) : send_bytes_, shift(), own),
      second_(context.memory(), what_.in_place ? 0 : recv_bytes_, shift()) {}

void Buffers::put() {
  before_ = first_.copy();
  first_.put();
  second_.put();
}

void Buffers::fill(uint64_t seed) {
  seed_ = seed;
  if (what_.kind != Kind::broadcast || context_.rank() == what_.root) {
    conformance::fill(what_.dtype, what_.op, seed, context_.rank(), 0, send_bytes_ / size_of(what_.dtype),
                      first_.data() + send_at());
  }
  put();
}

Work Buffers::start(CommBackend& backend) const {
  void* const recv = (what_.in_place ? first_ : second_).at(recv_at());
  Collective call = context_.memory().call(first_.at(send_at()), recv, what_.count, what_.dtype, what_.op);
  call.root = what_.root;
  return start_call(backend, what_.kind, call);
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
  if (what_.in_place && what_.kind == Kind::reduce_scatter && !holds_other_blocks()) {
    return "changed a block of send that is not recv";
  }
  return "";
}

bool Buffers::holds_other_blocks() const {
  auto now = first_.copy();
  const auto own = static_cast<std::ptrdiff_t>(block_);
  std::copy_n(before_.begin() + own, block_bytes(), now.begin() + own);
  return now == before_;
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

Work start_call(CommBackend& backend, Kind kind, const Collective& call) {
  if (kind != Kind::exchange) return comm::start(backend, kind, call);
  std::vector<Block> send, recv;
  const std::size_t bytes = call.count * size_of(call.dtype);
  for (std::size_t at = 0; send.size() < static_cast<std::size_t>(backend.size()); at += bytes) {
    send.push_back({static_cast<char*>(const_cast<void*>(call.send)) + at, bytes});
    recv.push_back({static_cast<char*>(call.recv) + at, bytes});
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
  const bool same_on_all = same != nullptr && !sends_blocks(what.kind);
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
