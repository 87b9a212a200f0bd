// An exchange, in pieces: a rank puts a piece for another rank into its own area, and may put the next one before that
// rank has taken the first. The numbers of pieces go on from one exchange to the next. Nothing here waits for a rank
// that this one has no data for, and gets none from.
#include <algorithm>
#include <string>

#include "reduction/pairwise.hpp"
#include "reduction/reduce.hpp"
#include "shm/collectives.hpp"

namespace ddprun::shm {
namespace {

// Of a block, which is cut into pieces of `most` bytes.
uint64_t pieces_of(const Block& block, uint64_t most) {
  return (block.bytes + most - 1) / most;
}

}  // namespace

void Collectives::exchange(const Exchange& call, Waiter& waiter) {
  const auto ranks = static_cast<int>(areas_.size());
  if (areas_.size() > kMostLanes) {
    throw CommError(CommStatus::unsupported, "an exchange of " + std::to_string(ranks) + " ranks in shared memory");
  }
  const auto move = [&](int to, const Block& out, int from, const Block& in) {
    const uint64_t to_put = pieces_of(out, piece_bytes()), to_take = pieces_of(in, piece_bytes());
    for (uint64_t i = 0; i < std::max(to_put, to_take + 1); ++i) {  // what is taken is one behind
      if (i < to_put) put(static_cast<std::size_t>(to), out, i * piece_bytes(), waiter);
      if (i > 0 && i <= to_take) take(static_cast<std::size_t>(from), in, (i - 1) * piece_bytes(), waiter);
    }
  };
  reduction::exchange_pairwise(static_cast<int>(me_), ranks, call, reduction::move_bytes, move);
  awaited_ = -1;
}

uint64_t Collectives::piece_bytes() const {
  return kChunk / 2 / areas_.size() / kLine * kLine;
}

std::byte* Collectives::piece(std::size_t owner, std::size_t other, uint32_t number) const {
  return areas_[owner]->pieces + (other * 2 + number % 2) * piece_bytes();
}

void Collectives::wait(std::size_t member, Word& word, uint32_t number, Waiter& waiter) {
  awaited_ = ranks_[member];
  word.wait(number, areas_[member]->sleepers, awaited_, waiter);
}

void Collectives::put(std::size_t to, const Block& block, uint64_t at, Waiter& waiter) {
  Lane& lane = areas_[me_]->lanes[to];
  const uint32_t number = ++sent_[to];
  wait(to, areas_[to]->lanes[me_].taken, number - 2, waiter);
  lane.left[number % 2] = block.bytes - at;
  reduction::move_bytes(piece(me_, to, number), static_cast<std::byte*>(block.data) + at,
                        std::min(block.bytes - at, piece_bytes()));
  lane.sent.post(number, areas_[me_]->sleepers);
}

void Collectives::take(std::size_t from, const Block& block, uint64_t at, Waiter& waiter) {
  Lane& lane = areas_[from]->lanes[me_];
  const uint32_t number = ++taken_[from];
  wait(from, lane.sent, number, waiter);
  if (lane.left[number % 2] != block.bytes - at) {
    throw CommError(CommStatus::mismatch, "exchange: rank " + std::to_string(ranks_[from]) +
                                              " sends another number of bytes than this rank expects");
  }
  reduction::move_bytes(static_cast<std::byte*>(block.data) + at, piece(from, me_, number),
                        std::min(block.bytes - at, piece_bytes()));
  areas_[me_]->lanes[from].taken.post(number, areas_[me_]->sleepers);
}

}  // namespace ddprun::shm
