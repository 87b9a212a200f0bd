#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include <cstring>
#include <vector>

#include "algorithms.hpp"
#include "ddprun/plugin/topology.hpp"
#include "reduction/reduce.hpp"
#include "segments.hpp"

namespace ddprun::gloo_backend {
namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// The way down: receives from the parent, sends to the children.
class Descent {
 public:
  Descent(const Run& run, const topology::Tree& tree, void* data, uint64_t bytes, const Segments& segments)
      : tree_(tree), children_(tree.children()), segments_(segments), slot_(gloo::Slot::build(kTreeDown, run.tag)) {
    if (tree.parent() >= 0) from_parent_ = run.context->createUnboundBuffer(data, bytes);
    for (int i = 0; i < children_.count; ++i) to_child_.push_back(run.context->createUnboundBuffer(data, bytes));
  }

  // Posts the receives from the parent. A send up may still use this memory: the result arrives only after it.
  void expect() {
    for (int s = 0; from_parent_ && s < segments_.number(); ++s) {
      from_parent_->recv(tree_.parent(), slot_, segments_.bytes(s).offset, segments_.bytes(s).length);
    }
  }
  void hand_on(int segment) {
    const auto [offset, length] = segments_.bytes(segment);
    for (std::size_t i = to_child_.size(); i-- > 0;) to_child_[i]->send(children_.at[i], slot_, offset, length);
  }
  // After expect(): passes all segments from the parent to the children. The root calls hand_on itself.
  void run() {
    for (int s = 0; from_parent_ && s < segments_.number(); ++s) {
      from_parent_->waitRecv();
      hand_on(s);
    }
  }
  void finish() {
    for (auto& child : to_child_) {
      for (int s = 0; s < segments_.number(); ++s) child->waitSend();
    }
  }

 private:
  const topology::Tree tree_;
  const topology::Ranks children_;
  const Segments& segments_;
  const uint64_t slot_;
  Buffer from_parent_;
  std::vector<Buffer> to_child_;
};

// The way up: adds what the children send, and sends the sum to the parent. Each child has a buffer of two segments.
class Ascent {
 public:
  Ascent(const Run& run, const topology::Tree& tree, const Collective& call, const Segments& segments)
      : tree_(tree),
        children_(tree.children()),
        call_(call),
        segments_(segments),
        slot_(gloo::Slot::build(kTreeUp, run.tag)),
        reduce_(reduction::reduce_function(call.dtype, call.op)),
        data_(static_cast<std::byte*>(call.recv)) {
    const uint64_t buffer_bytes = 2 * segments.longest();
    arrived_ = run.scratch.of_size(buffer_bytes * static_cast<uint64_t>(children_.count));
    for (int i = 0; i < children_.count; ++i) {
      from_child_.push_back(
          run.context->createUnboundBuffer(arrived_ + static_cast<uint64_t>(i) * buffer_bytes, buffer_bytes));
    }
    if (tree.parent() >= 0) to_parent_ = run.context->createUnboundBuffer(data_, call.count * size_of(call.dtype));
  }

  void expect() {
    for (int s = 0; s < 2 && s < segments_.number(); ++s) {
      for (std::size_t i = 0; i < from_child_.size(); ++i) expect(i, s);
    }
  }
  // Completes one segment of the sum over this subtree. Called in the order of the segments.
  void reduce(int segment) {
    const auto [offset, length] = segments_.bytes(segment);
    for (std::size_t i = 0; i < from_child_.size(); ++i) {
      from_child_[i]->waitRecv();
      const auto* theirs = static_cast<const std::byte*>(from_child_[i]->ptr) + buffer_offset(segment);
      reduce_(data_ + offset, data_ + offset, theirs, segments_.elements(segment));
      if (segment + 2 < segments_.number()) expect(i, segment + 2);
    }
    if (to_parent_) to_parent_->send(tree_.parent(), slot_, offset, length);
  }
  void finish() {
    for (int s = 0; to_parent_ && s < segments_.number(); ++s) to_parent_->waitSend();
  }

 private:
  uint64_t buffer_offset(int segment) const { return segment % 2 == 0 ? 0 : segments_.longest(); }
  void expect(std::size_t child, int segment) {
    from_child_[child]->recv(children_.at[child], slot_, buffer_offset(segment), segments_.bytes(segment).length);
  }

  const topology::Tree tree_;
  const topology::Ranks children_;
  const Collective& call_;
  const Segments& segments_;
  const uint64_t slot_;
  const reduction::Reduce reduce_;
  std::byte* const data_;
  std::byte* arrived_;
  std::vector<Buffer> from_child_;
  Buffer to_parent_;
};

}  // namespace

void tree_allreduce(const Run& run, const Collective& call) {
  const topology::Tree tree{run.context->rank, run.context->size, 0};
  const Segments segments(call.count, call.dtype);
  const uint64_t bytes = call.count * size_of(call.dtype);

  Ascent ascent(run, tree, call, segments);
  Descent descent(run, tree, call.recv, bytes, segments);
  ascent.expect();
  descent.expect();
  if (call.send != call.recv) std::memcpy(call.recv, call.send, bytes);
  const bool is_root = tree.parent() < 0;
  for (int s = 0; s < segments.number(); ++s) {
    ascent.reduce(s);
    if (!is_root) continue;
    if (call.op == Op::avg) {
      auto* complete = static_cast<std::byte*>(call.recv) + segments.bytes(s).offset;
      reduction::divide(complete, call.dtype, segments.elements(s), run.context->size);
    }
    descent.hand_on(s);
  }
  descent.run();
  ascent.finish();
  descent.finish();
}

void tree_broadcast(const Run& run, const Collective& call) {
  const topology::Tree tree{run.context->rank, run.context->size, call.root};
  const Segments segments(call.count, call.dtype);
  Descent descent(run, tree, call.recv, call.count * size_of(call.dtype), segments);
  descent.expect();
  for (int s = 0; tree.parent() < 0 && s < segments.number(); ++s) descent.hand_on(s);
  descent.run();
  descent.finish();
}

}  // namespace ddprun::gloo_backend
