// Ranks that share memory, if one of them stays away, aborts, or dies.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins/lib/shm/group_member.hpp"

using namespace ddprun::testing;
using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// The code path of the ranks' collectives when the error happens.
struct Path {
  std::size_t count;
  bool allocated;
};
const std::vector<Path> kPaths = {{4, false}, {300'000, true}, {300'000, false}};

struct Vector {
  Vector(GroupMember& member, const Path& path) : own(path.allocated ? 0 : path.count) {
    data = path.allocated ? static_cast<float*>(member.group().alloc(path.count * sizeof(float))) : own.data();
  }
  std::vector<float> own;
  float* data;
};

void allreduce(GroupMember& member, const Path& path, Vector& vector) {
  member.allreduce(DType::float32, Op::max, vector.data, vector.data, path.count);
}

// Runs allreduces until one fails; reports its status and text.
void report_the_end(Rank& rank, GroupMember& member, const Path& path, Vector& vector) {
  try {
    while (true) allreduce(member, path, vector);
  } catch (const CommError& failure) {
    rank.report(name_of(failure.status()) + " " + failure.what());
  }
}

// Everything that a rank has reported.
std::string reported(const Outcome& outcome) {
  std::string text;
  for (const auto& record : outcome.records) text += record;
  return text;
}

std::string failure_text(CommStatus status, const std::string& text) {
  return name_of(status) + " allreduce: " + text;
}

}  // namespace

TEST_CASE("all other ranks name a killed rank, long before the deadline") {
  for (const Path& path : kPaths) {
    for (const bool busy : {true, false}) {
      CAPTURE(path.count);
      CAPTURE(path.allocated);
      CAPTURE(busy);
      const auto outcomes = run_ranks(4, As::processes, seconds(60), [&](Rank& rank) {
        GroupMember member(rank);
        Vector vector(member, path);
        rank.meet();
        if (rank.rank() == 2) {
          std::thread([] {
            std::this_thread::sleep_for(milliseconds(50));
            raise(SIGKILL);
          }).detach();
          if (!busy) std::this_thread::sleep_for(seconds(50));
        }
        report_the_end(rank, member, path, vector);
      });
      CHECK(outcomes[2].number == SIGKILL);
      for (const int other : {0, 1, 3}) {
        CHECK(outcomes[other].describe() == "rank " + std::to_string(other) + ": finished");
        CHECK(reported(outcomes[other]) == failure_text(CommStatus::peer_lost, "rank 2 is gone"));
      }
    }
  }
}

TEST_CASE("abort from another thread, or the host's flag, ends the call, and the others name that rank") {
  for (const Path& path : kPaths) {
    for (const bool by_flag : {true, false}) {
      CAPTURE(path.count);
      CAPTURE(by_flag);
      const auto outcomes = run_ranks(3, As::processes, seconds(60), [&](Rank& rank) {
        GroupMember member(rank);
        Vector vector(member, path);
        rank.meet();
        if (rank.rank() == 0) {
          rank.meet();  // stays away until the others have failed
          return;
        }
        std::thread other([&] {
          std::this_thread::sleep_for(milliseconds(50));
          if (rank.rank() != 1) return;
          by_flag ? member.raise_abort_flag() : member.group().abort();
        });
        report_the_end(rank, member, path, vector);
        other.join();
        rank.meet();
      });
      CHECK(failures(outcomes) == "");
      CHECK(reported(outcomes[1]) == failure_text(CommStatus::aborted, "aborted"));
      CHECK(reported(outcomes[2]) == failure_text(CommStatus::peer_lost, "rank 1 is gone"));
    }
  }
}

TEST_CASE("the deadline's error names a rank that does not come") {
  for (const Path& path : kPaths) {
    CAPTURE(path.count);
    const auto outcomes = run_ranks(2, As::processes, seconds(60), [&](Rank& rank) {
      GroupMember member(rank, 1000);
      Vector vector(member, path);
      rank.meet();
      const auto start = Clock::now();
      if (rank.rank() == 0) report_the_end(rank, member, path, vector);
      if (rank.rank() == 0 && Clock::now() - start < milliseconds(1000)) throw std::runtime_error("too early");
      rank.meet();
    });
    CHECK(failures(outcomes) == "");
    CHECK(reported(outcomes[0]) == failure_text(CommStatus::timeout, "no answer from rank 1 within 1000 ms"));
  }
}

TEST_CASE("the others name a rank that leaves the group; its earlier data still counts") {
  for (const As as : {As::processes, As::threads}) {
    CAPTURE(name_of(as));
    const auto outcomes = run_ranks(3, as, seconds(60), [](Rank& rank) {
      GroupMember member(rank);
      const Path path = {4, false};
      Vector vector(member, path);
      allreduce(member, path, vector);
      if (rank.rank() == 1) {
        member.end();
      } else {
        report_the_end(rank, member, path, vector);
      }
      rank.meet();
    });
    CHECK(failures(outcomes) == "");
    for (const int other : {0, 2}) {
      CHECK(reported(outcomes[other]) == failure_text(CommStatus::peer_lost, "rank 1 is gone"));
    }
  }
}

TEST_CASE("a rank that has left keeps its allocations") {
  CHECK(failures(run_ranks(2, As::processes, seconds(60), [](Rank& rank) {
          GroupMember member(rank);
          auto* data = static_cast<float*>(member.group().alloc(1 << 20));
          auto* other = static_cast<float*>(member.group().alloc(1 << 20));
          member.group().leave(rank.rank());
          member.group().free(other);
          std::fill_n(data, (1 << 20) / sizeof(float), 1.0f);
        })) == "");
}

TEST_CASE("alloc of more memory than there is fails on all ranks alike, and the group can continue") {
  CHECK(failures(run_ranks(2, As::processes, seconds(60), [](Rank& rank) {
          GroupMember member(rank);
          for (const uint64_t bytes : {uint64_t{1} << 50, ~uint64_t{0}}) {
            try {
              member.group().alloc(bytes);
              throw std::runtime_error("was given");
            } catch (const CommError& failure) {
              if (failure.status() != CommStatus::no_memory) throw;
            }
          }
          int32_t one = 1;
          member.allreduce(DType::int32, Op::sum, &one, &one, 1);
          if (one != 2) throw std::runtime_error("sum");
        })) == "");
}
