// What becomes of ranks that share memory when one of them stays away, gives up, or dies.
#include <doctest/doctest.h>

#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins/comm_ucx/group_member.hpp"

using namespace ddprun::testing;
using ddprun::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Where the ranks are when it happens: which way their collectives go.
struct Way {
  std::size_t count;
  bool allocated;
};
const std::vector<Way> kWays = {{4, false}, {300'000, true}, {300'000, false}};

struct Vector {
  Vector(GroupMember& member, const Way& way) : own(way.allocated ? 0 : way.count) {
    data = way.allocated ? static_cast<float*>(member.group().alloc(way.count * sizeof(float))) : own.data();
  }
  std::vector<float> own;
  float* data;
};

void allreduce(GroupMember& member, const Way& way, Vector& vector) {
  member.allreduce(DType::float32, Op::max, vector.data, vector.data, way.count);
}

// Allreduces until that fails; reports the status and the text.
void report_the_end(Rank& rank, GroupMember& member, const Way& way, Vector& vector) {
  try {
    while (true) allreduce(member, way, vector);
  } catch (const Failure& failure) {
    rank.report(std::to_string(failure.status()) + " " + failure.what());
  }
}

// All that a rank has reported.
std::string said(const Outcome& outcome) {
  std::string text;
  for (const auto& record : outcome.records) text += record;
  return text;
}

std::string told(int status, const std::string& text) {
  return std::to_string(status) + " allreduce: " + text;
}

}  // namespace

TEST_CASE("a rank that is killed is named by all others, long before the deadline") {
  for (const Way& way : kWays) {
    for (const bool busy : {true, false}) {
      CAPTURE(way.count);
      CAPTURE(way.allocated);
      CAPTURE(busy);
      const auto outcomes = run_ranks(4, As::processes, seconds(60), [&](Rank& rank) {
        GroupMember member(rank);
        Vector vector(member, way);
        rank.meet();
        if (rank.rank() == 2) {
          std::thread([] {
            std::this_thread::sleep_for(milliseconds(50));
            raise(SIGKILL);
          }).detach();
          if (!busy) std::this_thread::sleep_for(seconds(50));
        }
        report_the_end(rank, member, way, vector);
      });
      CHECK(outcomes[2].number == SIGKILL);
      for (const int other : {0, 1, 3}) {
        CHECK(outcomes[other].describe() == "rank " + std::to_string(other) + ": finished");
        CHECK(said(outcomes[other]) == told(DDPRUN_PEER_LOST, "rank 2 is gone"));
      }
    }
  }
}

TEST_CASE("abort from another thread, or the host's flag, ends the call, and the others name that rank") {
  for (const Way& way : kWays) {
    for (const bool by_flag : {true, false}) {
      CAPTURE(way.count);
      CAPTURE(by_flag);
      const auto outcomes = run_ranks(3, As::processes, seconds(60), [&](Rank& rank) {
        GroupMember member(rank);
        Vector vector(member, way);
        rank.meet();
        if (rank.rank() == 0) {
          rank.meet();  // stays away until the others have given up
          return;
        }
        std::thread other([&] {
          std::this_thread::sleep_for(milliseconds(50));
          if (rank.rank() != 1) return;
          by_flag ? member.raise_abort_flag() : member.group().abort();
        });
        report_the_end(rank, member, way, vector);
        other.join();
        rank.meet();
      });
      CHECK(failures(outcomes) == "");
      CHECK(said(outcomes[1]) == told(DDPRUN_ABORTED, "aborted"));
      CHECK(said(outcomes[2]) == told(DDPRUN_PEER_LOST, "rank 1 is gone"));
    }
  }
}

TEST_CASE("a rank that does not come is named at the deadline") {
  for (const Way& way : kWays) {
    CAPTURE(way.count);
    const auto outcomes = run_ranks(2, As::processes, seconds(60), [&](Rank& rank) {
      GroupMember member(rank, 1000);
      Vector vector(member, way);
      rank.meet();
      const auto start = Clock::now();
      if (rank.rank() == 0) report_the_end(rank, member, way, vector);
      if (rank.rank() == 0 && Clock::now() - start < milliseconds(1000)) throw std::runtime_error("too early");
      rank.meet();
    });
    CHECK(failures(outcomes) == "");
    CHECK(said(outcomes[0]) == told(DDPRUN_TIMEOUT, "no answer from rank 1 within 1000 ms"));
  }
}

TEST_CASE("a rank that leaves the group is named, and what it has sent before still counts") {
  for (const As as : {As::processes, As::threads}) {
    CAPTURE(name_of(as));
    const auto outcomes = run_ranks(3, as, seconds(60), [](Rank& rank) {
      GroupMember member(rank);
      const Way way = {4, false};
      Vector vector(member, way);
      allreduce(member, way, vector);
      if (rank.rank() == 1) {
        member.end();
      } else {
        report_the_end(rank, member, way, vector);
      }
      rank.meet();
    });
    CHECK(failures(outcomes) == "");
    for (const int other : {0, 2}) {
      CHECK(said(outcomes[other]) == told(DDPRUN_PEER_LOST, "rank 1 is gone"));
    }
  }
}

TEST_CASE("what a rank that left has allocated stays its own") {
  CHECK(failures(run_ranks(2, As::processes, seconds(60), [](Rank& rank) {
          GroupMember member(rank);
          auto* data = static_cast<float*>(member.group().alloc(1 << 20));
          auto* other = static_cast<float*>(member.group().alloc(1 << 20));
          member.group().leave(rank.rank());
          member.group().free(other);
          std::fill_n(data, (1 << 20) / sizeof(float), 1.0f);
        })) == "");
}

TEST_CASE("alloc of more than there is fails on all ranks alike, and the group lives on") {
  CHECK(failures(run_ranks(2, As::processes, seconds(60), [](Rank& rank) {
          GroupMember member(rank);
          for (const uint64_t bytes : {uint64_t{1} << 50, ~uint64_t{0}}) {
            try {
              member.group().alloc(bytes);
              throw std::runtime_error("was given");
            } catch (const ddprun::Failure& failure) {
              if (failure.status() != DDPRUN_NO_MEMORY) throw;
            }
          }
          int32_t one = 1;
          member.allreduce(DType::int32, Op::sum, &one, &one, 1);
          if (one != 2) throw std::runtime_error("sum");
        })) == "");
}
