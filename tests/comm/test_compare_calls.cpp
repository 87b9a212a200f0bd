#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "comm/fingerprint.hpp"
#include "comm/shared_table.hpp"
#include "joined.hpp"
#include "support/error_of.hpp"
#include "support/process.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::error_of;
using testing::eventually;
using testing::failures;
using testing::Outcome;
using testing::Rank;
using testing::run_ranks;
using testing::TempDir;

constexpr auto kDeadline = 60s;

// What the fingerprints are exchanged over.
enum class Over { table, backend };

std::unique_ptr<CommBackend> join_comparing(Rank& rank, Over over, const std::shared_ptr<TableMemory>& table,
                                            std::chrono::milliseconds deadline = kDeadline) {
  auto options = options_of(rank);
  options.deadline = deadline;
  auto backend = join(fake("good"), options);
  backend->compare_calls(over == Over::table ? shared_table(table, rank.rank()) : exchange_over(*backend));
  return backend;
}

std::vector<Outcome> run_with_table(int size, As as,
                                    const std::function<void(Rank&, const std::shared_ptr<TableMemory>&)>& body) {
  const TempDir folder;
  const std::string path = (folder.path() / "table").string();
  // Threads share one mapping, so that ThreadSanitizer sees all their accesses; each process maps the table itself.
  const auto shared = as == As::threads ? map_table(path, size) : nullptr;
  return run_ranks(size, as, kDeadline, [&](Rank& rank) { body(rank, shared ? shared : map_table(path, size)); });
}

// Runs the ranks with backends that compare their calls. An exception of `body` is the outcome's error.
std::vector<Outcome> run_comparing(int size, As as, Over over, const std::function<void(Rank&, CommBackend&)>& body,
                                   std::chrono::milliseconds deadline = kDeadline) {
  return run_with_table(size, as, [&](Rank& rank, const std::shared_ptr<TableMemory>& table) {
    const auto backend = join_comparing(rank, over, table, deadline);
    body(rank, *backend);
  });
}

// A collective on buffers of ones; throws std::runtime_error if an error comes after data has moved.
struct Called {
  Kind kind = Kind::allreduce;
  DType dtype = DType::float32;
  std::size_t count = 4;
  Op op = Op::sum;
  int root = 0;
  int64_t bucket = -1;

  void operator()(CommBackend& backend) const {
    const std::size_t bytes = count * static_cast<std::size_t>(backend.size()) * size_of(dtype);
    const std::vector<char> send(bytes, 1);
    std::vector<char> recv(bytes, 1);
    try {
      if (kind == Kind::exchange) {  // of other sizes on each rank
        const std::vector<Block> blocks(static_cast<std::size_t>(backend.size()));
        backend.exchange({blocks, blocks}).wait(kDeadline);
        return;
      }
      start(backend, kind,
            {.send = send.data(),
             .recv = recv.data(),
             .count = count,
             .dtype = dtype,
             .op = op,
             .root = root,
             .bucket = bucket})
          .wait(kDeadline);
    } catch (const Error&) {
      if (recv != send) throw std::runtime_error("data moved before the ranks were stopped");
      throw;
    }
  }
};

struct Disagreement {
  const char* what;
  std::vector<Called> rank_0;
  std::vector<Called> rank_1;
  std::string line;
};

const std::vector<Disagreement> kDisagreements = {
    {"count",
     {{.count = 100}},
     {{.count = 99}},
     "rank 0 called allreduce 1 (float32 x 100, sum), rank 1 called allreduce 1 (float32 x 99, sum)"},
    {"dtype",
     {{.dtype = DType::float32}},
     {{.dtype = DType::int32}},
     "rank 0 called allreduce 1 (float32 x 4, sum), rank 1 called allreduce 1 (int32 x 4, sum)"},
    {"op",
     {{.op = Op::sum}},
     {{.op = Op::max}},
     "rank 0 called allreduce 1 (float32 x 4, sum), rank 1 called allreduce 1 (float32 x 4, max)"},
    {"root",
     {{.kind = Kind::broadcast, .root = 0}},
     {{.kind = Kind::broadcast, .root = 1}},
     "rank 0 called broadcast 1 (float32 x 4, root 0), rank 1 called broadcast 1 (float32 x 4, root 1)"},
    {"kind",
     {{.kind = Kind::allreduce, .count = 100}},
     {{.kind = Kind::broadcast, .dtype = DType::int64, .count = 7}},
     "rank 0 called allreduce 1 (float32 x 100, sum), rank 1 called broadcast 1 (int64 x 7, root 0)"},
    {"order",
     {{.count = 4}, {.count = 100}, {.count = 200}},
     {{.count = 4}, {.count = 200}, {.count = 100}},
     "rank 0 called allreduce 2 (float32 x 100, sum), rank 1 called allreduce 2 (float32 x 200, sum)"},
    {"order of two tensors with the same shape",
     {{.bucket = 0}, {.bucket = 1}, {.bucket = 2}},
     {{.bucket = 0}, {.bucket = 2}, {.bucket = 1}},
     "rank 0 called allreduce 2 (float32 x 4, sum, bucket 1), rank 1 called allreduce 2 (float32 x 4, sum, bucket 2)"},
    {"one skipped",
     {{.count = 4}, {.count = 4}, {.kind = Kind::barrier}},
     {{.count = 4}, {.kind = Kind::barrier}},
     "rank 0 called allreduce 2 (float32 x 4, sum), rank 1 called barrier 2"},
    {"an exchange and another collective",
     {{.kind = Kind::exchange}, {.kind = Kind::exchange}},
     {{.kind = Kind::exchange}, {.kind = Kind::allreduce}},
     "rank 0 called exchange 2, rank 1 called allreduce 2 (float32 x 4, sum)"},
};

}  // namespace

TEST_CASE("ranks that disagree are stopped before data moves, and every rank reports who called what") {
  for (const Over over : {Over::table, Over::backend}) {
    for (const As as : {As::processes, As::threads}) {
      for (const Disagreement& disagreement : kDisagreements) {
        CAPTURE(disagreement.what);
        const auto outcomes = run_comparing(2, as, over, [&](Rank& rank, CommBackend& backend) {
          for (const Called& call : rank.rank() == 0 ? disagreement.rank_0 : disagreement.rank_1) call(backend);
        });
        for (const Outcome& outcome : outcomes) {
          CHECK(outcome.number == static_cast<int>(ExitCode::peer));
          CHECK(outcome.error == "good: rank " + std::to_string(outcome.rank) + ": mismatch: " + disagreement.line);
        }
      }
    }
  }
}

TEST_CASE("ranks that agree get the backend's result") {
  for (const Over over : {Over::table, Over::backend}) {
    for (const As as : {As::processes, As::threads}) {
      const auto outcomes = run_comparing(3, as, over, [](Rank& rank, CommBackend& backend) {
        for (int turn = 0; turn < 100; ++turn) {
          const float send = static_cast<float>(rank.rank() + turn);
          float recv = 0;
          backend.allreduce({.send = &send, .recv = &recv, .count = 1}).wait(kDeadline);
          if (recv != static_cast<float>(3 + 3 * turn)) throw std::runtime_error("wrong sum");
          backend.broadcast({.recv = &recv, .count = 1, .root = turn % 3}).wait(kDeadline);
        }
      });
      CHECK(failures(outcomes) == "");
    }
  }
}

TEST_CASE("ranks that made the same call are named together") {
  const auto outcomes = run_comparing(4, As::processes, Over::table, [](Rank& rank, CommBackend& backend) {
    Called{.count = rank.rank() == 1 ? 5U : 4U}(backend);
  });
  CHECK(outcomes[3].error ==
        "good: rank 3: mismatch: ranks 0, 2 and 3 called allreduce 1 (float32 x 4, sum), rank 1 called allreduce 1 "
        "(float32 x 5, sum)");
}

TEST_CASE("after a disagreement every later call fails") {
  const auto outcomes = run_comparing(2, As::threads, Over::table, [](Rank& rank, CommBackend& backend) {
    error_of([&] { Called{.count = rank.rank() == 1 ? 5U : 4U}(backend); });
    backend.barrier();
  });
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.error == "good: rank " + std::to_string(outcome.rank) +
                               ": barrier 2: the ranks have disagreed or lost one another before");
  }
}

// Over a backend whose plugin throws, this is an Error that is no CommError.
class FailingExchange final : public FingerprintExchange {
 public:
  std::span<const CallShape> exchange(const CallShape&, std::chrono::milliseconds) override {
    throw Error(ExitCode::plugin, "the plugin threw");
  }
  void abort() noexcept override {}
};

TEST_CASE("after an exchange that failed in any way, every later call fails") {
  const auto backend = join(fake("good"), single_rank_options());
  backend->compare_calls(std::make_unique<FailingExchange>());
  CHECK(error_of([&] { Called{}(*backend); }) == "3: the plugin threw");
  CHECK(error_of([&] { Called{}(*backend); }).find("the ranks have disagreed or lost one another before") !=
        std::string::npos);
}

TEST_CASE("a rank that leaves before the last collective is named") {
  const auto outcomes = run_comparing(2, As::threads, Over::table, [](Rank& rank, CommBackend& backend) {
    Called{}(backend);
    if (rank.rank() == 0) Called{.count = 9}(backend);
  });
  CHECK(outcomes[1].ok());
  CHECK(outcomes[0].error == "good: rank 0: allreduce 2 (float32 x 9, sum): peer lost: rank 1 (process " +
                                 std::to_string(outcomes[1].pid) + ") has left, after collective 1");
}

TEST_CASE("a rank that dies is named by the ranks that wait for it") {
  const auto outcomes = run_comparing(2, As::processes, Over::table, [](Rank& rank, CommBackend& backend) {
    if (rank.rank() == 1) std::raise(SIGKILL);
    Called{}(backend);
  });
  CHECK(outcomes[1].end == Outcome::End::killed);
  CHECK(outcomes[0].error == "good: rank 0: allreduce 1 (float32 x 4, sum): peer lost: rank 1 (process " +
                                 std::to_string(outcomes[1].pid) + ") has ended, before its first collective");
}

TEST_CASE("a rank that does not arrive in time is named with its position") {
  const auto body = [](Rank& rank, CommBackend& backend) {
    Called{}(backend);
    if (rank.rank() == 0) rank.report(error_of([&] { Called{}(backend); }));
    rank.meet(1);
  };
  const auto outcomes = run_comparing(2, As::processes, Over::table, body, 2s);
  CHECK(failures(outcomes) == "");
  CHECK(outcomes[0].records ==
        std::vector<std::string>{"5: good: rank 0: allreduce 2 (float32 x 4, sum): timeout: rank "
                                 "1 did not come within 2000 ms, after collective 1"});
}

TEST_CASE("an abort from another thread ends the wait, and the peers see it") {
  for (const As as : {As::processes, As::threads}) {
    const auto outcomes = run_with_table(2, as, [](Rank& rank, const std::shared_ptr<TableMemory>& table) {
      const auto backend = join_comparing(rank, Over::table, table);
      if (rank.rank() == 1) {
        rank.meet(1);  // only after the other rank's exception
        return Called{}(*backend);
      }
      std::thread other([&] {
        eventually([&] { return table->members()[0].slots[1].sequence == 1; });  // the call has begun
        backend->abort();
      });
      rank.report(error_of([&] { Called{}(*backend); }));
      other.join();
      rank.meet(1);
      rank.meet(2);  // remains, so that the peer sees an abort and not an exit
    });
    CHECK(outcomes[0].records == std::vector<std::string>{"5: good: rank 0: allreduce 1 (float32 x 4, sum): aborted"});
    CHECK(outcomes[1].error == "good: rank 1: allreduce 1 (float32 x 4, sum): peer lost: rank 0 (process " +
                                   std::to_string(outcomes[0].pid) + ") has aborted, after collective 1");
  }
}

}  // namespace ddprun::comm
