#include "shm/collectives.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "reduction/reduce.hpp"

namespace ddprun::shm {

using reduction::move_bytes;

namespace {

const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}
std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

}  // namespace

Collectives::Collectives(std::size_t me, std::vector<int> ranks, std::vector<Area*> areas, const SharedMemory& memory)
    : me_(me),
      ranks_(std::move(ranks)),
      areas_(std::move(areas)),
      memory_(memory),
      sent_(areas_.size()),
      taken_(areas_.size()),
      from_(areas_.size()),
      to_(areas_.size()) {}

Mailbox& Collectives::begin(const Purpose& purpose) {
  ++collectives_;
  Mailbox& mine = mailbox(me_);
  mine.purpose = purpose;
  return mine;
}

void Collectives::post_and_wait(Waiter& waiter) {
  mailbox(me_).posted.post(collectives_, areas_[me_]->sleepers);
  bool agreed = true;
  for (std::size_t member = 0; member < areas_.size(); ++member) {
    if (member == me_) continue;
    mailbox(member).posted.wait(collectives_, areas_[member]->sleepers, ranks_[member], waiter);
    agreed = agreed && mailbox(member).purpose == mailbox(me_).purpose;
  }
  if (!agreed) throw CommError(CommStatus::mismatch, "the ranks of this host called different collectives");
}

void Collectives::barrier(Waiter& waiter) {
  ++steps_;
  areas_[me_]->step.post(steps_, areas_[me_]->sleepers);
  for (std::size_t member = 0; member < areas_.size(); ++member) {
    if (member != me_) areas_[member]->step.wait(steps_, areas_[member]->sleepers, ranks_[member], waiter);
  }
}

// Slices begin at whole cache lines of the vector, so that no two ranks write into the same one.
Collectives::Range Collectives::slice(std::size_t member, uint64_t count, uint64_t element) const {
  const uint64_t bytes = count * element, ranks = areas_.size();
  const uint64_t most = ((bytes + ranks - 1) / ranks + kLine - 1) / kLine * kLine;
  return {std::min(member * most, bytes), std::min((member + 1) * most, bytes)};
}

Algorithm Collectives::allreduce(const Collective& call, Algorithm asked, Waiter& waiter) {
  return reduce_all(call, Purpose::allreduce, asked, waiter);
}

void Collectives::reduce_to_first(const Collective& call, Waiter& waiter) {
  reduce_all(call, Purpose::reduce, Algorithm::automatic, waiter);
}

Algorithm Collectives::reduce_all(const Collective& call, Purpose::Kind kind, Algorithm asked, Waiter& waiter) {
  to_first_ = kind == Purpose::reduce;
  const uint64_t bytes = call.count * size_of(call.dtype);
  const Purpose purpose = {kind, static_cast<int16_t>(call.dtype), static_cast<int16_t>(call.op), call.count};
  const bool is_direct_only = asked == Algorithm::direct && bytes > 0;
  if (bytes <= kInline && !is_direct_only) {
    move_bytes(begin(purpose).data, call.send, bytes);
    post_and_wait(waiter);
    reduce_posted(call);
    return Algorithm::staged;
  }
  const Locations mine = asked == Algorithm::staged
                             ? Locations()
                             : Locations{memory_.find(call.send, bytes), memory_.find(call.recv, bytes)};
  const bool fits = areas_.size() == 2 && bytes <= kWhole;
  const bool is_staged = !mine.are_somewhere() && !is_direct_only;
  const bool posts = fits && is_staged, stages = !fits && is_staged;
  Mailbox& own = begin(purpose);
  own.locations = mine;
  // A vector outside any allocation is staged whatever the others post: post_and_wait() is its first barrier.
  if (posts) move_bytes(own.data, call.send, bytes);
  if (stages) copy_in(call, chunk(call, 0));
  post_and_wait(waiter);
  std::size_t somewhere = 0;
  for (std::size_t member = 0; member < areas_.size(); ++member) {
    somewhere += mailbox(member).locations.are_somewhere();
  }
  if (somewhere == areas_.size()) {
    reduce_direct(call, waiter);
    return Algorithm::direct;
  }
  if (is_direct_only) refuse_direct();
  if (fits && somewhere == 0) {
    reduce_posted(call);
  } else {
    reduce_staged(call, stages, !fits && somewhere == 0, waiter);
  }
  return Algorithm::staged;
}

void Collectives::refuse_direct() const {
  std::size_t member = 0;
  while (mailbox(member).locations.are_somewhere()) ++member;
  throw CommError(CommStatus::unsupported,
                  "algorithm \"direct\" takes vectors in memory from this backend's alloc, and those of rank " +
                      std::to_string(ranks_[member]) + " are in other memory: \"auto\" and \"staged\" take both");
}

void Collectives::reduce_posted(const Collective& call) {
  if (!is_target(me_)) return;
  for (std::size_t member = 0; member < areas_.size(); ++member) from_[member] = mailbox(member).data;
  from_[me_] = call.send;
  to_.assign(1, call.recv);
  reduce(call, call.count);
}

void Collectives::reduce(const Collective& call, uint64_t count) {
  const auto targets = static_cast<int>(to_.size()), sources = static_cast<int>(from_.size());
  if (call.op != Op::avg) {
    return reduction::reduce_all(to_.data(), targets, from_.data(), sources, call.dtype, call.op, count);
  }
  // In blocks that stay in the first-level cache until they are divided and copied.
  constexpr uint64_t kBlock = 1024;
  const uint64_t element = size_of(call.dtype);
  for (uint64_t done = 0; done < count; done += kBlock) {
    const uint64_t now = std::min(kBlock, count - done);
    reduction::reduce_all(to_.data(), 1, from_.data(), sources, call.dtype, call.op, now);
    reduction::divide(to_[0], call.dtype, now, sources);
    for (std::size_t other = 1; other < to_.size(); ++other) move_bytes(to_[other], to_[0], now * element);
    for (auto& from : from_) from = bytes_of(from) + now * element;
    for (auto& to : to_) to = bytes_of(to) + now * element;
  }
}

void Collectives::reduce_direct(const Collective& call, Waiter& waiter) {
  const uint64_t element = size_of(call.dtype);
  const Range mine = slice(me_, call.count, element);
  to_.clear();
  for (std::size_t member = 0; member < areas_.size(); ++member) {
    const Locations& locations = mailbox(member).locations;
    from_[member] = memory_.at(member, locations.send) + mine.begin;
    if (is_target(member)) to_.push_back(memory_.at(member, locations.recv) + mine.begin);
  }
  if (to_.size() > 1) std::swap(to_[0], to_[me_]);  // this rank's first: see reduce()
  reduce(call, mine.bytes() / element);
  barrier(waiter);
}

// One barrier per chunk: while the others still reduce chunk i, this rank copies the next chunk into its other input
// slot. All ranks have read what that slot held two chunks ago: each has since reached the barrier that follows its
// reading. The first inputs of a call may be written at once: those of the last call were read before its last barrier.
// The last call's outputs may still be read until all ranks reach the barrier after copy_in.
void Collectives::reduce_staged(const Collective& call, bool first_is_in, bool all_are_in, Waiter& waiter) {
  const uint64_t chunks = (call.count * size_of(call.dtype) + kChunk - 1) / kChunk;
  if (!first_is_in) copy_in(call, chunk(call, 0));
  if (!all_are_in) barrier(waiter);
  for (uint64_t number = 0; number < chunks; ++number) {
    reduce_chunk(call, chunk(call, number));
    if (number + 1 < chunks) copy_in(call, chunk(call, number + 1));
    barrier(waiter);
    copy_out(call, chunk(call, number));
  }
}

Collectives::Chunk Collectives::chunk(const Collective& call, uint64_t number) const {
  const uint64_t element = size_of(call.dtype), most = kChunk / element;
  return {number * most * element, std::min(most, call.count - number * most), element, number % 2};
}

void Collectives::copy_in(const Collective& call, const Chunk& chunk) {
  const std::byte* send = bytes_of(call.send) + chunk.begin;
  std::byte* input = areas_[me_]->inputs[chunk.slot];
  const Range mine = slice(me_, chunk.count, chunk.element);
  move_bytes(input, send, mine.begin);
  move_bytes(input + mine.end, send + mine.end, chunk.count * chunk.element - mine.end);
}

void Collectives::reduce_chunk(const Collective& call, const Chunk& chunk) {
  const Range mine = slice(me_, chunk.count, chunk.element);
  for (std::size_t member = 0; member < areas_.size(); ++member) {
    from_[member] = areas_[member]->inputs[chunk.slot] + mine.begin;
  }
  from_[me_] = bytes_of(call.send) + chunk.begin + mine.begin;
  to_.clear();
  if (is_target(me_)) to_.push_back(bytes_of(call.recv) + chunk.begin + mine.begin);
  if (!to_first_ || me_ != 0) to_.push_back(areas_[me_]->outputs[chunk.slot] + mine.begin);
  reduce(call, mine.bytes() / chunk.element);
}

void Collectives::copy_out(const Collective& call, const Chunk& chunk) const {
  if (!is_target(me_)) return;
  for (std::size_t member = 0; member < areas_.size(); ++member) {
    if (member == me_) continue;
    const Range theirs = slice(member, chunk.count, chunk.element);
    move_bytes(bytes_of(call.recv) + chunk.begin + theirs.begin, areas_[member]->outputs[chunk.slot] + theirs.begin,
               theirs.bytes());
  }
}

// The root writes into a slot again only after the barrier that follows the others' reading. It returns only
// after the last barrier, so that nobody changes its vector while others read it.
void Collectives::broadcast(void* data, uint64_t bytes, std::size_t root, Waiter& waiter) {
  Mailbox& own = begin({Purpose::broadcast, static_cast<int16_t>(DType::uint8), static_cast<int16_t>(root), bytes});
  own.locations.send = memory_.find(data, bytes);
  post_and_wait(waiter);
  if (const Location& source = mailbox(root).locations.send; source.is_somewhere()) {
    if (root != me_) move_bytes(data, memory_.at(root, source), bytes);
    return barrier(waiter);
  }
  for (uint64_t begin = 0, slot = 0; begin < bytes; begin += kChunk, slot = 1 - slot) {
    const uint64_t now = std::min<uint64_t>(kChunk, bytes - begin);
    if (root == me_) move_bytes(areas_[me_]->outputs[slot], bytes_of(data) + begin, now);
    barrier(waiter);
    if (root != me_) move_bytes(bytes_of(data) + begin, areas_[root]->outputs[slot], now);
  }
}

// As above: a slot has been read once all ranks reach the next barrier but one, or the next post_and_wait().
void Collectives::allgather(const Collective& call, Waiter& waiter) {
  const uint64_t bytes = call.count * size_of(call.dtype);
  const auto block = [&](std::size_t member) { return bytes_of(call.recv) + member * bytes; };
  begin({Purpose::allgather, static_cast<int16_t>(call.dtype), 0, call.count});
  post_and_wait(waiter);
  if (call.send != block(me_)) move_bytes(block(me_), call.send, bytes);
  for (uint64_t begin = 0, slot = 0; begin < bytes; begin += kChunk, slot = 1 - slot) {
    const uint64_t now = std::min<uint64_t>(kChunk, bytes - begin);
    move_bytes(areas_[me_]->outputs[slot], block(me_) + begin, now);
    barrier(waiter);
    for (std::size_t member = 0; member < areas_.size(); ++member) {
      if (member != me_) move_bytes(block(member) + begin, areas_[member]->outputs[slot], now);
    }
  }
}

// Each output slot has a part for each rank. The input slots cannot be used: an allreduce fills them before
// post_and_wait().
void Collectives::reduce_scatter(const Collective& call, Waiter& waiter) {
  const uint64_t element = size_of(call.dtype), most = kChunk / areas_.size() / element;
  begin({Purpose::reduce_scatter, static_cast<int16_t>(call.dtype), static_cast<int16_t>(call.op), call.count});
  post_and_wait(waiter);
  for (uint64_t done = 0, slot = 0; done < call.count; done += most, slot = 1 - slot) {
    const uint64_t now = std::min(most, call.count - done);
    const auto of_send = [&](std::size_t member) {
      return bytes_of(call.send) + (member * call.count + done) * element;
    };
    const auto of_slot = [&](std::size_t owner, std::size_t member) {
      return areas_[owner]->outputs[slot] + member * most * element;
    };
    for (std::size_t member = 0; member < areas_.size(); ++member) {
      if (member != me_) move_bytes(of_slot(me_, member), of_send(member), now * element);
    }
    barrier(waiter);
    for (std::size_t member = 0; member < areas_.size(); ++member) from_[member] = of_slot(member, me_);
    from_[me_] = of_send(me_);
    to_.assign(1, bytes_of(call.recv) + done * element);
    reduce(call, now);
  }
}

void Collectives::barrier_of_all(Waiter& waiter) {
  begin({Purpose::barrier, static_cast<int16_t>(DType::uint8), 0, 0});
  post_and_wait(waiter);
}

void Collectives::exchange(const void* mine, std::size_t bytes, void* all, Waiter& waiter) {
  move_bytes(begin({Purpose::exchange, static_cast<int16_t>(DType::uint8), 0, bytes}).data, mine, bytes);
  post_and_wait(waiter);
  for (std::size_t member = 0; member < areas_.size(); ++member)
    move_bytes(bytes_of(all) + member * bytes, mailbox(member).data, bytes);
}

}  // namespace ddprun::shm
