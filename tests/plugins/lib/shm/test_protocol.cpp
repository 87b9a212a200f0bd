// Only the protocol, on plain memory that threads share, so that ThreadSanitizer sees every access. It would see none
// between ranks that map one memory at different addresses.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "plugins/rank_host.hpp"
#include "shm/collectives.hpp"
#include "testing/ranks.hpp"

using namespace ddprun::testing;
using ddprun::Collective;
using ddprun::DType;
using ddprun::Op;
using ddprun::shm::Algorithm;
using ddprun::shm::Area;
using ddprun::shm::Collectives;
using ddprun::shm::kChunk;
using ddprun::shm::kInline;
using ddprun::shm::kWhole;
using ddprun::shm::Location;
using ddprun::shm::Poll;
using ddprun::shm::Waiter;

namespace {

constexpr std::size_t kCount = 3 * kChunk / sizeof(int32_t);

// What the ranks share: two allocations each.
struct Shared {
  explicit Shared(int size) : areas(size), vectors(size) {
    for (auto& area : areas) area = std::make_unique<Area>();
    for (auto& two : vectors) {
      for (auto& vector : two) vector.resize(kCount);
    }
  }
  std::vector<std::unique_ptr<Area>> areas;
  std::vector<std::array<std::vector<int32_t>, 2>> vectors;
};

class Memory final : public ddprun::shm::SharedMemory {
 public:
  Memory(Shared& shared, int me) : shared_(shared), me_(me) {}
  Location find(const void* data, uint64_t) const noexcept override {
    for (uint64_t number : {0, 1}) {
      const auto offset =
          reinterpret_cast<uintptr_t>(data) - reinterpret_cast<uintptr_t>(shared_.vectors[me_][number].data());
      if (offset < kCount * sizeof(int32_t)) return {number, offset};
    }
    return {};
  }
  std::byte* at(std::size_t member, const Location& location) const noexcept override {
    return reinterpret_cast<std::byte*>(shared_.vectors[member][location.allocation].data()) + location.offset;
  }

 private:
  Shared& shared_;
  int me_;
};

ddprun::Host host_of(const Rank& rank) {
  ddprun_comm_host host = {};
  host.struct_size = sizeof host;
  host.rank = rank.rank();
  host.size = rank.size();
  host.deadline_ms = 60'000;
  host.algorithm = "auto";
  return ddprun::Host(host);
}

// Vectors of one chunk and of several, in place in every second round.
void check_allgather(Collectives& collectives, Rank& rank, Waiter& waiter, int round) {
  const std::size_t count = round % 3 == 0 ? 7 : 2 * kChunk / sizeof(int32_t) + 5;
  std::vector<int32_t> all(count * rank.size(), -1), own(count, round + rank.rank());
  int32_t* const mine = all.data() + count * rank.rank();
  if (round % 2 == 0) std::copy(own.begin(), own.end(), mine);
  Collective call = {};
  call.dtype = DType::int32;
  call.send = round % 2 == 0 ? mine : own.data();
  call.recv = all.data();
  call.count = count;
  waiter.begin("allgather");
  collectives.allgather(call, waiter);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != round + static_cast<int>(i / count)) throw std::runtime_error("allgather " + std::to_string(i));
  }
}

void check_reduce_scatter(Collectives& collectives, Rank& rank, Waiter& waiter, int round) {
  const std::size_t count = round % 3 == 0 ? 7 : kChunk / sizeof(int32_t) + 5;
  std::vector<int32_t> all(count * rank.size()), own(count, -1);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i) + round * (rank.rank() + 1);
  Collective call = {};
  call.dtype = DType::int32;
  call.op = Op::sum;
  call.send = all.data();
  call.recv = round % 2 == 0 ? all.data() + count * rank.rank() : own.data();
  call.count = count;
  waiter.begin("reduce_scatter");
  collectives.reduce_scatter(call, waiter);
  const auto* const result = static_cast<const int32_t*>(call.recv);
  const int32_t sum = round * rank.size() * (rank.size() + 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const auto expected = rank.size() * static_cast<int32_t>(count * rank.rank() + i) + sum;
    if (result[i] != expected) throw std::runtime_error("reduce_scatter " + std::to_string(i));
  }
}

// Sizes of their own for each pair and round: some empty, some of several pieces.
void check_exchange(Collectives& collectives, Rank& rank, Waiter& waiter, int round) {
  const auto bytes = [&](int from, int to) {
    return static_cast<std::size_t>((from * 7 + to * 3 + round) % 4) * kChunk / 3 + static_cast<std::size_t>(round % 2);
  };
  const auto value = [&](int from, int to) { return static_cast<std::byte>(from * 16 + to + round); };
  std::vector<std::vector<std::byte>> memory;
  std::vector<ddprun::Block> send, recv;
  for (int peer = 0; peer < rank.size(); ++peer) {
    auto& out = memory.emplace_back(bytes(rank.rank(), peer), value(rank.rank(), peer));
    send.push_back({out.data(), out.size()});
    auto& in = memory.emplace_back(bytes(peer, rank.rank()));
    recv.push_back({in.data(), in.size()});
  }
  waiter.begin("exchange");
  collectives.exchange(ddprun::Exchange{send, recv}, waiter);
  for (int peer = 0; peer < rank.size(); ++peer) {
    const auto& in = memory[static_cast<std::size_t>(2 * peer + 1)];
    if (std::count(in.begin(), in.end(), value(peer, rank.rank())) != std::ssize(in)) {
      throw std::runtime_error("exchange from " + std::to_string(peer));
    }
  }
}

// The vectors of the first rank are overwritten at once: a rank that still reads them gets wrong values.
void check_reduce_to_first(Collectives& collectives, Rank& rank, Waiter& waiter, int round, int32_t* send,
                           int32_t* recv, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) send[i] = static_cast<int32_t>(i) + round * (rank.rank() + 1);
  if (recv != send) std::fill_n(recv, count, -2);
  const Collective call = allreduce_of(DType::int32, Op::sum, send, recv, count);
  waiter.begin("reduce");
  collectives.reduce_to_first(call, waiter);
  const int32_t sum = round * rank.size() * (rank.size() + 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const auto own = recv == send ? static_cast<int32_t>(i) + round * (rank.rank() + 1) : -2;
    const auto expected = rank.rank() == 0 ? rank.size() * static_cast<int32_t>(i) + sum : own;
    if (recv[i] != expected) throw std::runtime_error("reduce to first " + std::to_string(i));
  }
  if (rank.rank() == 0) std::fill_n(recv, count, -1);
  const bool is_root = rank.rank() == round % rank.size();
  if (is_root) std::fill_n(recv, count, round);
  collectives.broadcast(recv, count * sizeof(int32_t), round % rank.size(), waiter);
  if (std::count(recv, recv + count, round) != static_cast<long>(count)) throw std::runtime_error("broadcast in place");
  if (is_root) std::fill_n(recv, count, -1);
}

void run(Shared& shared, Rank& rank, int rounds) {
  const Memory memory(shared, rank.rank());
  std::vector<int> ranks;
  std::vector<Area*> areas;
  for (int peer = 0; peer < rank.size(); ++peer) {
    ranks.push_back(peer);
    areas.push_back(shared.areas[peer].get());
  }
  Collectives collectives(rank.rank(), ranks, areas, memory);
  Waiter waiter(host_of(rank), rank.size(), Poll::memory, [] { return -1; });
  std::vector<int32_t> own(kCount);
  const std::vector<std::size_t> counts = {1,          kInline / 4,    kInline / 4 + 1, kCount,
                                           kWhole / 4, kWhole / 4 + 1, kChunk / 4 + 33, kCount / 2};
  for (int round = 0; round < rounds; ++round) {
    const std::size_t count = counts[round % counts.size()];
    int32_t* vectors[] = {shared.vectors[rank.rank()][0].data(), shared.vectors[rank.rank()][1].data(), own.data()};
    // In every other round the ranks bring vectors of different kinds.
    int32_t* send = vectors[(round + round % 2 * rank.rank()) % 3];
    int32_t* recv = vectors[(round / 3) % 3];
    for (std::size_t i = 0; i < count; ++i) send[i] = static_cast<int32_t>(i) + round * (rank.rank() + 1);
    const Collective call = allreduce_of(DType::int32, Op::sum, send, recv, count);
    waiter.begin("allreduce");
    collectives.allreduce(call, Algorithm::automatic, waiter);
    const int32_t sum = round * rank.size() * (rank.size() + 1) / 2;
    for (std::size_t i = 0; i < count; ++i) {
      if (recv[i] != rank.size() * static_cast<int32_t>(i) + sum) {
        throw std::runtime_error("round " + std::to_string(round) + " element " + std::to_string(i));
      }
    }
    std::fill_n(recv, count, -1);  // a rank that still reads it gets wrong values
    std::array<char, 1000> mine, all[4];
    mine.fill(static_cast<char>(rank.rank() + round));
    collectives.exchange(mine.data(), mine.size(), all, waiter);
    for (int peer = 0; peer < rank.size(); ++peer) {
      if (all[peer][999] != static_cast<char>(peer + round)) throw std::runtime_error("exchange");
    }
    std::vector<char> text(2 * kChunk + 1, rank.rank() == round % rank.size() ? 'x' : '-');
    collectives.broadcast(text.data(), text.size(), round % rank.size(), waiter);
    if (std::count(text.begin(), text.end(), 'x') != static_cast<long>(text.size()))
      throw std::runtime_error("broadcast");
    check_reduce_to_first(collectives, rank, waiter, round, send, recv, count);
    check_allgather(collectives, rank, waiter, round);
    check_reduce_scatter(collectives, rank, waiter, round);
    check_exchange(collectives, rank, waiter, round);
    collectives.barrier_of_all(waiter);
  }
  rank.meet();
}

}  // namespace

TEST_CASE("the collectives on plain memory") {
  for (const int size : {2, 3, 4}) {
    CAPTURE(size);
    Shared shared(size);
    CHECK(failures(run_ranks(size, As::threads, std::chrono::seconds(300),
                             [&](Rank& rank) { run(shared, rank, 60); })) == "");
  }
}
