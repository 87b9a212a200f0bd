#include "tools/conformance/collective.hpp"

#include <bit>
#include <map>

#include "tools/conformance/guarded.hpp"

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

// The buffers of a collective on one rank, and their content before it.
class Buffers {
 public:
  Buffers(const tools::BufferMemory& memory, const TestCall& what, int rank, int size)
      : what_(what),
        element_(size_of(what.dtype)),
        send_count_(what.kind == Kind::reduce_scatter ? what.count * size : what.count),
        recv_count_(what.kind == Kind::allgather ? what.count * size : what.count),
        block_(static_cast<std::size_t>(rank) * what.count * element_),
        // In place, the larger buffer holds both. Out of place, both start one element after a cache line.
        send_(what.in_place && what.kind == Kind::allgather ? 0 : send_count_ * element_, shift()),
        recv_(what.in_place && what.kind != Kind::allgather ? 0 : recv_count_ * element_, shift()),
        send_image_(memory, send_.whole(), send_.whole_bytes()),
        recv_image_(memory, recv_.whole(), recv_.whole_bytes()) {}

  std::size_t send_count() const { return send_count_; }
  std::size_t recv_count() const { return recv_count_; }
  unsigned char* send() {
    return what_.in_place && what_.kind == Kind::allgather ? recv_.data() + block_ : send_.data();
  }
  unsigned char* recv() {
    if (!what_.in_place || what_.kind == Kind::allgather) return recv_.data();
    return what_.kind == Kind::reduce_scatter ? send_.data() + block_ : send_.data();
  }

  // The collective with these buffers, for a backend.
  void* send_memory() {
    return (what_.in_place && what_.kind == Kind::allgather ? recv_image_ : send_image_).at(send());
  }
  void* recv_memory() {
    return (!what_.in_place || what_.kind == Kind::allgather ? recv_image_ : send_image_).at(recv());
  }

  // To be called before the collective, and after it.
  void put() {
    before_ = send_.copy();
    send_image_.put();
    recv_image_.put();
  }
  void get() {
    send_image_.get();
    recv_image_.get();
  }
  // Fills both with other numbers, and later says whether something else has written there.
  void overwrite() {
    for (Guarded* one : {&send_, &recv_}) std::fill_n(one->data(), one->bytes(), kOther);
    put();
    other_ = recv_.copy();
  }
  std::string fault_after_overwrite() {
    get();
    return send_.holds(before_) && recv_.holds(other_) ? "" : "wrote into a buffer after wait had returned";
  }
  std::string fault() const {
    if (!send_.intact() || !recv_.intact()) return "wrote outside the buffers";
    if (!what_.in_place && !send_.holds(before_)) return "changed send";
    if (what_.in_place && what_.kind == Kind::reduce_scatter && !holds_other_blocks()) {
      return "changed a block of send that is not recv";
    }
    return "";
  }

 private:
  bool holds_other_blocks() const {
    auto now = send_.copy();
    const std::size_t bytes = what_.count * element_;
    std::copy_n(before_.begin() + static_cast<std::ptrdiff_t>(block_), bytes,
                now.begin() + static_cast<std::ptrdiff_t>(block_));
    return now == before_;
  }

  static constexpr unsigned char kOther = 0x3C;

  std::size_t shift() const { return what_.in_place ? 0 : element_; }

  TestCall what_;
  std::size_t element_;
  std::size_t send_count_;
  std::size_t recv_count_;
  std::size_t block_;
  Guarded send_;
  Guarded recv_;
  Image send_image_;
  Image recv_image_;
  std::vector<unsigned char> before_;
  std::vector<unsigned char> other_;
};

// If the digests show that all ranks hold the same bits, the ranks divide the check of a large result: each checks
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

Image::Image(const tools::BufferMemory& memory, void* host, std::size_t bytes, void* own)
    : memory_(memory),
      host_(static_cast<unsigned char*>(host)),
      bytes_(bytes),
      first_(own == nullptr ? host_ : static_cast<unsigned char*>(own)) {
  constexpr std::size_t kLine = 64;
  if (memory.kind() == Memory::host || own != nullptr) return;
  on_gpu_ = reused_memory(memory, bytes + kLine);
  first_ = static_cast<unsigned char*>(on_gpu_.get()) + reinterpret_cast<std::uintptr_t>(host) % kLine;
}

void* Image::at(const void* host) const {
  return host == nullptr ? nullptr : first_ + (static_cast<const unsigned char*>(host) - host_);
}

Reduced::Reduced(Context& context, DType dtype, Op op, std::size_t count, void* own)
    : context_(context),
      what_{.dtype = dtype, .op = op, .count = count},
      content_(count * size_of(dtype)),
      image_(context.memory(), content_.data(), content_.size(), own) {}

void Reduced::fill(uint64_t seed) {
  seed_ = seed;
  conformance::fill(what_.dtype, what_.op, seed, context_.rank(), 0, what_.count, content_.data());
  image_.put();
}

Collective Reduced::call() const {
  void* const memory = image_.at(content_.data());
  return context_.memory().call(memory, memory, what_.count, what_.dtype, what_.op);
}

std::string Reduced::fault() {
  image_.get();
  return fault_of(context_, what_, seed_, content_.data(), what_.count);
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

Checked run_checked(Context& context, CommBackend& backend, const TestCall& what, uint64_t seed, Context* digest) {
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
    const std::size_t bytes = buffers.recv_count() * size_of(what.dtype);
    result_bytes.assign(buffers.recv(), buffers.recv() + bytes);
    buffers.overwrite();
    std::this_thread::sleep_for(what.overwrite_after);
    if (result.fault.empty()) result.fault = buffers.fault_after_overwrite();
  }
  const unsigned char* const recv = result_bytes.empty() ? buffers.recv() : result_bytes.data();

  const bool same_on_all = digest != nullptr && what.kind != Kind::reduce_scatter;
  const bool shared = same_on_all && buffers.recv_count() >= kShared;
  const std::size_t stride = shared ? static_cast<std::size_t>(context.size()) : 1;
  const std::string wrong =
      fault_of(context, what, seed, recv, buffers.recv_count(), shared ? static_cast<std::size_t>(rank) : 0, stride);
  if (!wrong.empty()) result.fault = wrong;
  if (result.fault.empty()) result.fault = buffers.fault();
  if (same_on_all) {
    digest->digest(buffers.recv(), buffers.recv_count() * size_of(what.dtype));
  }
  return result;
}

void run_plain(Context& context, CommBackend& backend, const TestCall& what, milliseconds timeout) {
  Buffers buffers(context.memory(), what, context.rank(), context.size());
  start(context, backend, what, buffers).wait(timeout);
  // On a stream nothing has run yet: the barrier reports the result.
  if (context.settings().capabilities.stream_ordered) backend.barrier().wait(timeout);
}

}  // namespace ddprun::conformance
