// The allreduce of ranks that share memory, against the reference of the conformance suite.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins/lib/shm/group_member.hpp"
#include "testing/arithmetic.hpp"

using namespace ddprun::testing;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using ddprun::conformance::accepts;
using ddprun::conformance::fill;
using ddprun::conformance::load;
using ddprun::shm::Algorithm;
using std::chrono::seconds;

namespace {

constexpr std::size_t kLargest = 700'001;  // elements: several chunks of every dtype

std::size_t bytes_of(DType dtype) {
  return ddprun::size_of(dtype);
}

// The size in bytes of the guards before and after each buffer.
constexpr std::size_t kGuard = 64;
constexpr std::byte kUntouched{0xa5};

enum class From { allocated, elsewhere };

// Where the vectors of a test are: in a whole allocation, at an offset within one, or in the rank's private memory.
class Buffer {
 public:
  Buffer(GroupMember& member, From from) {
    if (from == From::allocated) {
      data_ = static_cast<std::byte*>(member.group().alloc(kBytes));
    } else {
      own_.resize(kBytes);
      data_ = own_.data();
    }
  }
  // `bytes` bytes, `offset` after the guard, all unwritten.
  std::byte* take(std::size_t offset, std::size_t bytes) {
    first_ = data_ + offset;
    std::memset(first_, static_cast<int>(kUntouched), bytes + 2 * kGuard);
    bytes_ = bytes;
    return first_ + kGuard;
  }
  bool guards_hold() const {
    const auto is_untouched = [](std::byte value) { return value == kUntouched; };
    return std::all_of(first_, first_ + kGuard, is_untouched) &&
           std::all_of(first_ + kGuard + bytes_, first_ + 2 * kGuard + bytes_, is_untouched);
  }

 private:
  static constexpr std::size_t kBytes = kLargest * 8 + (1 << 16);
  std::byte* data_;
  std::byte* first_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<std::byte> own_;
};

struct Case {
  DType dtype;
  Op op;
  std::size_t count;
  bool in_place;
  std::size_t offset = 0;
  uint64_t seed = 1;

  std::string text() const {
    return "dtype " + std::to_string(static_cast<int>(dtype)) + " op " + std::to_string(static_cast<int>(op)) +
           " count " + std::to_string(count) + (in_place ? " in place" : "") + " offset " + std::to_string(offset);
  }
};

struct By {
  Algorithm asked = Algorithm::automatic;
  std::optional<Algorithm> served = std::nullopt;  // the expected one
};

void run_case(Rank& rank, GroupMember& member, Buffer& first, Buffer& second, const Case& test, const By& by = {}) {
  const std::size_t bytes = test.count * bytes_of(test.dtype);
  std::byte* send = first.take(test.offset, bytes);
  std::byte* recv = test.in_place ? send : second.take(test.offset, bytes);
  fill(test.dtype, test.op, test.seed, rank.rank(), 0, test.count, send);
  const std::vector<std::byte> sent(send, send + bytes);
  const Algorithm served = member.allreduce(test.dtype, test.op, send, recv, test.count, by.asked);
  if (by.served && served != *by.served) throw std::runtime_error(test.text() + ": served by the other algorithm");
  // Large vectors are compared at some places, including the boundaries between slices and chunks.
  const std::size_t stride = test.count > 20'000 ? 61 : 1;
  for (std::size_t i = 0; i < test.count; i += i + 200 < test.count ? stride : 1) {
    const auto expected = ddprun::conformance::reduce(test.dtype, test.op, test.seed, rank.size(), i);
    const auto got = load(test.dtype, recv, i);
    if (!accepts(test.dtype, expected, got)) {
      throw std::runtime_error(test.text() + ": element " + std::to_string(i) + ": expected " +
                               ddprun::conformance::to_text(test.dtype, expected.value) + ", got " +
                               ddprun::conformance::to_text(test.dtype, got));
    }
  }
  if (!test.in_place && !std::equal(sent.begin(), sent.end(), send))
    throw std::runtime_error(test.text() + ": send changed");
  if (!first.guards_hold() || (!test.in_place && !second.guards_hold())) {
    throw std::runtime_error(test.text() + ": written beyond the vector");
  }
  std::size_t digest = std::hash<std::string_view>()({reinterpret_cast<const char*>(recv), bytes});
  std::vector<std::size_t> digests(rank.size());
  rank.allgather(&digest, sizeof digest, digests.data());
  if (std::count(digests.begin(), digests.end(), digest) != rank.size()) {
    throw std::runtime_error(test.text() + ": the ranks' results differ");
  }
}

bool is_defined(DType dtype, Op op) {
  return op != Op::avg || ddprun::is_floating(dtype);
}

template <class Body>
void for_each_dtype_and_op(const Body& body) {
  for (int dtype = 0; dtype < static_cast<int>(ddprun::kDTypeCount); ++dtype) {
    for (int op = 0; op < static_cast<int>(ddprun::kOpCount); ++op) {
      if (is_defined(static_cast<DType>(dtype), static_cast<Op>(op)))
        body(static_cast<DType>(dtype), static_cast<Op>(op));
    }
  }
}

std::string ran(int size, As as, const std::function<void(Rank&)>& body) {
  return failures(run_ranks(size, as, seconds(300), body));
}

}  // namespace

TEST_CASE("every dtype and op, direct and staged, also requested by name") {
  for (const int size : {1, 2, 3, 5}) {
    CAPTURE(size);
    CHECK(ran(size, As::processes, [](Rank& rank) {
            GroupMember member(rank);
            Buffer allocated(member, From::allocated), other(member, From::allocated);
            Buffer own(member, From::elsewhere), other_own(member, From::elsewhere);
            uint64_t seed = 0;
            for_each_dtype_and_op([&](DType dtype, Op op) {
              const std::size_t element = bytes_of(dtype);
              const std::size_t several_chunks = (2 * ddprun::shm::kChunk + 999) / std::max<std::size_t>(2, element);
              for (const std::size_t count : {std::size_t{5}, std::size_t{9'001}, several_chunks}) {
                if (count == several_chunks && op != Op::sum) continue;  // sanitizers make the check slow
                const bool in_place = ++seed % 2 == 0, is_small = count * element <= ddprun::shm::kInline;
                const Case test = {dtype, op, count, in_place, 0, seed};
                run_case(rank, member, allocated, other, test,
                         {Algorithm::automatic, is_small ? Algorithm::staged : Algorithm::direct});
                run_case(rank, member, allocated, other, test, {Algorithm::staged, Algorithm::staged});
                run_case(rank, member, own, other_own, test, {Algorithm::automatic, Algorithm::staged});
                if (count == several_chunks) continue;  // as automatic
                run_case(rank, member, allocated, other, test, {Algorithm::direct, Algorithm::direct});
                run_case(rank, member, own, other_own, test, {Algorithm::staged, Algorithm::staged});
              }
            });
          }) == "");
  }
}

TEST_CASE("every count around the boundaries of slices, chunks and mailboxes") {
  const std::vector<std::size_t> counts = {0,      1,      2,       31,      32,      33,      63,      65,     1023,
                                           1024,   2047,   2048,    2049,    2050,    4095,    4097,    65'535, 65'536,
                                           65'537, 65'600, 131'071, 131'072, 131'073, 131'105, kLargest};
  for (const int size : {1, 2, 3, 4, 5}) {
    CAPTURE(size);
    CHECK(ran(size, As::processes, [&](Rank& rank) {
            GroupMember member(rank);
            Buffer allocated(member, From::allocated), other(member, From::allocated);
            Buffer own(member, From::elsewhere), other_own(member, From::elsewhere);
            for (const std::size_t count : counts) {
              for (const bool in_place : {true, false}) {
                run_case(rank, member, allocated, other, {DType::float32, Op::sum, count, in_place});
                run_case(rank, member, own, other_own, {DType::float32, Op::sum, count, in_place});
              }
            }
          }) == "");
  }
}

TEST_CASE("vectors may be anywhere, in different places on each rank, and in allocations on some ranks only") {
  for (const int size : {2, 3}) {
    CAPTURE(size);
    CHECK(ran(size, As::processes, [](Rank& rank) {
            GroupMember member(rank);
            Buffer allocated(member, From::allocated), other(member, From::allocated);
            Buffer own(member, From::elsewhere), other_own(member, From::elsewhere);
            for (const std::size_t count : {100, 20'000, 300'000}) {
              for (const bool in_place : {true, false}) {
                Case test = {DType::float32, Op::sum, count, in_place};
                test.offset = 4 * static_cast<std::size_t>(rank.rank() + 1);
                run_case(rank, member, allocated, other, test);
                run_case(rank, member, rank.rank() == 0 ? own : allocated, other, test);
                run_case(rank, member, allocated, rank.rank() == 1 ? own : other, test);
                run_case(rank, member, own, allocated, test);
                // Allocations are used in another order on each rank.
                run_case(rank, member, rank.rank() == 0 ? allocated : other, rank.rank() == 0 ? other : allocated,
                         test);
              }
            }
          }) == "");
  }
}

TEST_CASE("direct refuses vectors in other memory on all ranks alike, names a rank, and the group can continue") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    CHECK(ran(size, As::processes, [](Rank& rank) {
            GroupMember member(rank);
            constexpr std::size_t kMost = 300'000;
            auto* const shared = static_cast<int32_t*>(member.group().alloc(kMost * sizeof(int32_t)));
            std::vector<int32_t> own(kMost);
            for (const std::size_t count : {std::size_t{1}, std::size_t{20'000}, kMost}) {
              std::fill_n(shared, count, 1);
              for (const int first : {0, rank.size() - 1}) {  // of the ranks whose recv is in other memory
                int32_t* const recv = rank.rank() >= first ? own.data() : shared;
                try {
                  member.allreduce(DType::int32, Op::sum, shared, recv, count, Algorithm::direct);
                  throw std::runtime_error("not refused");
                } catch (const ddprun::CommError& failure) {
                  const std::string who = "those of rank " + std::to_string(first) + " ";
                  if (failure.status() != CommStatus::unsupported) throw;
                  if (std::string(failure.what()).find(who) == std::string::npos) throw;
                }
              }
              member.allreduce(DType::int32, Op::sum, shared, shared, count, Algorithm::direct);
              if (std::count(shared, shared + count, rank.size()) != static_cast<long>(count)) {
                throw std::runtime_error("sum");
              }
            }
            member.allreduce(DType::int32, Op::sum, nullptr, nullptr, 0, Algorithm::direct);
          }) == "");
  }
}

TEST_CASE("many collectives with changing algorithms follow one another without a pause") {
  for (const int size : {2, 4}) {
    CAPTURE(size);
    CHECK(ran(size, As::processes, [](Rank& rank) {
            GroupMember member(rank);
            constexpr std::size_t kCounts[] = {1, 3'000, 512, 200'000, 70'000, 2'048, 2'049};
            auto* shared = static_cast<int32_t*>(member.group().alloc(200'000 * sizeof(int32_t)));
            std::vector<int32_t> own(200'000);
            for (int round = 0; round < 700; ++round) {
              const std::size_t count = kCounts[round % 7];
              int32_t* data = round % 3 == 0 ? own.data() : shared;
              for (std::size_t i = 0; i < count; ++i) data[i] = round + rank.rank() * static_cast<int32_t>(i);
              member.allreduce(DType::int32, Op::sum, data, data, count);
              const int32_t ranks = rank.size(), pairs = ranks * (ranks - 1) / 2;
              for (std::size_t i = 0; i < count; ++i) {
                if (data[i] != ranks * round + pairs * static_cast<int32_t>(i)) {
                  throw std::runtime_error("round " + std::to_string(round) + " element " + std::to_string(i));
                }
              }
            }
          }) == "");
  }
}

TEST_CASE("a broadcast within the host reaches every rank, from every rank") {
  for (const int size : {1, 2, 3}) {
    CAPTURE(size);
    CHECK(ran(size, As::processes, [](Rank& rank) {
            GroupMember member(rank);
            for (const std::size_t count : {0, 1, 1'000'003}) {
              for (int root = 0; root < rank.size(); ++root) {
                std::vector<uint8_t> data(count, static_cast<uint8_t>(rank.rank() + 1));
                member.group().run("allreduce", [&](ddprun::shm::Collectives& all, ddprun::shm::Waiter& waiter) {
                  all.broadcast(data.data(), count, static_cast<std::size_t>(root), waiter);
                });
                if (std::count(data.begin(), data.end(), root + 1) != static_cast<long>(count)) {
                  throw std::runtime_error("from rank " + std::to_string(root));
                }
              }
            }
          }) == "");
  }
}

TEST_CASE("threads of one process can be ranks") {
  CHECK(ran(3, As::threads, [](Rank& rank) {
          GroupMember member(rank);
          Buffer allocated(member, From::allocated), other(member, From::elsewhere);
          for (const std::size_t count : {10, 5'000, 300'000}) {
            run_case(rank, member, allocated, other, {DType::float32, Op::sum, count, true});
            run_case(rank, member, other, allocated, {DType::float32, Op::avg, count, false});
          }
        }) == "");
}

TEST_CASE("alloc returns zeroed whole pages again and again, and free accepts them in any order") {
  CHECK(ran(3, As::processes, [](Rank& rank) {
          GroupMember member(rank);
          std::vector<int32_t*> kept;
          for (int round = 0; round < 150; ++round) {
            const std::size_t count = 1 + 5'000 * static_cast<std::size_t>(round % 4);
            auto* data = static_cast<int32_t*>(member.group().alloc(count * sizeof(int32_t)));
            if (reinterpret_cast<uintptr_t>(data) % 4096 != 0) throw std::runtime_error("not aligned to a page");
            if (std::count(data, data + count, 0) != static_cast<long>(count)) throw std::runtime_error("not zero");
            std::fill_n(data, count, round);
            member.allreduce(DType::int32, Op::sum, data, data, count);
            if (std::count(data, data + count, 3 * round) != static_cast<long>(count)) throw std::runtime_error("sum");
            kept.push_back(data);
            // Each rank frees different buffers, at different times.
            if (round % (rank.rank() + 2) != 0) continue;
            const auto gone = kept.begin() + round % static_cast<int>(kept.size());
            member.group().free(*gone);
            kept.erase(gone);
          }
          if (member.group().alloc(0) == nullptr) throw std::runtime_error("no memory of no bytes");
        }) == "");
}

TEST_CASE("different collectives on the ranks are an error on all ranks") {
  CHECK(ran(2, As::processes, [](Rank& rank) {
          const auto expect_mismatch = [&](DType dtype, Op op, std::size_t count) {
            GroupMember member(rank);
            std::vector<float> data(100'000, 1);
            try {
              member.allreduce(dtype, op, data.data(), data.data(), count);
              throw std::runtime_error("not seen");
            } catch (const ddprun::CommError& failure) {
              if (failure.status() != CommStatus::mismatch) throw;
            }
            rank.meet();
          };
          const bool first = rank.rank() == 0;
          expect_mismatch(DType::float32, Op::sum, first ? 10 : 11);
          expect_mismatch(DType::float32, Op::sum, first ? 10 : 100'000);
          expect_mismatch(first ? DType::float32 : DType::int32, Op::sum, 50'000);
          expect_mismatch(DType::float32, first ? Op::max : Op::min, 50'000);
        }) == "");
}

TEST_CASE("a rank without data may leave while two others exchange") {
  CHECK(ran(3, As::processes, [](Rank& rank) {
          GroupMember member(rank);
          constexpr std::size_t kBytes = 300'000;
          const auto peer = static_cast<std::size_t>(1 - rank.rank());
          std::vector<char> out(kBytes, static_cast<char>('a' + rank.rank())), in(kBytes);
          std::vector<ddprun::Block> send(3), recv(3);
          if (rank.rank() < 2) send[peer] = {out.data(), kBytes}, recv[peer] = {in.data(), kBytes};
          if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
          member.group().run("exchange", [&](ddprun::shm::Collectives& all, ddprun::shm::Waiter& waiter) {
            all.exchange(ddprun::Exchange{send, recv}, waiter);
          });
          if (rank.rank() == 2) member.end();
          if (rank.rank() < 2 && in != std::vector<char>(kBytes, rank.rank() == 0 ? 'b' : 'a')) {
            throw std::runtime_error("another block");
          }
          rank.meet();
        }) == "");
}
