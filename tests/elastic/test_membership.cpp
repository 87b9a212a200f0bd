#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "ddprun/error.hpp"
#include "elastic/membership.hpp"
#include "launch/rendezvous.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using elastic::Membership;
using std::chrono::milliseconds;

constexpr milliseconds kLimit{20000};

// The store of a job, and its launcher's part.
class JobOfRanks {
 public:
  Store& store() { return *store_; }
  void set_members(int change, const std::string& members) { store_->set(launch::members_key(change), members); }

 private:
  testing::TempDir folder_;
  std::unique_ptr<Store> store_ = launch::folder_store(folder_.path().string());
};

// Calls `body` once for each of these ranks, at the same time.
void on_ranks(const std::vector<int>& ranks, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  for (const int rank : ranks) threads.emplace_back([&body, rank] { body(rank); });
}

}  // namespace

TEST_CASE("at first all ranks are members, and nothing has changed") {
  JobOfRanks job;
  Membership members(job.store(), 2, 4);
  CHECK(members.rank() == 2);
  CHECK(members.size() == 4);
  CHECK_FALSE(members.renew(milliseconds(1)));
  CHECK(members.changes() == 0);
}

TEST_CASE("the ranks that are left meet, in the order of their first numbers") {
  JobOfRanks job;
  job.set_members(1, "0 2 3 died");
  std::vector<int> ranks(4, -2);
  std::vector<std::vector<std::string>> met(4);
  on_ranks({0, 2, 3}, [&](int rank) {
    Membership members(job.store(), rank, 4);
    members.renew(kLimit);
    met[static_cast<std::size_t>(rank)] = members.meet("of " + std::to_string(rank), kLimit);
    ranks[static_cast<std::size_t>(rank)] = members.rank();
  });
  CHECK(ranks == std::vector{0, -2, 1, 2});
  for (const int rank : {0, 2, 3}) {
    CHECK(met[static_cast<std::size_t>(rank)] == std::vector<std::string>{"of 0", "of 2", "of 3"});
  }
}

TEST_CASE("only the newest of several changes counts, and a rank that it leaves out is no member") {
  JobOfRanks job;
  job.set_members(1, "0 1 2 ");
  job.set_members(2, "1 2 ");
  Membership in(job.store(), 2, 4), out(job.store(), 0, 4);
  CHECK(in.renew(kLimit));
  CHECK(in.changes() == 2);
  CHECK(in.rank() == 1);
  CHECK(in.size() == 2);
  CHECK(out.renew(kLimit));
  CHECK(out.rank() == -1);
  job.set_members(3, "0 1 2 ");
  CHECK(out.renew(kLimit));
  CHECK(out.rank() == 0);
}

TEST_CASE("a rank that waits for a member ends with an error as soon as the members change") {
  JobOfRanks job;
  job.set_members(1, "0 1 ");
  Membership members(job.store(), 0, 3);
  members.renew(kLimit);
  const std::jthread launcher([&] {
    std::this_thread::sleep_for(milliseconds(20));
    job.set_members(2, "0 ");
  });
  try {
    members.meet("", kLimit);  // rank 1 does not come
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::peer);
    CHECK(std::string(error.what()) == "the ranks have changed while this one waited for \"members/1\"");
  }
}

TEST_CASE("the store of the members waits no longer than its limit, and knows no keys of earlier members") {
  JobOfRanks job;
  Membership members(job.store(), 0, 2);
  members.store()->set("key", "0");
  CHECK(members.store()->get("key", milliseconds(0)) == "0");
  job.set_members(1, "0 1 ");
  members.renew(kLimit);
  CHECK_FALSE(members.store()->get("key", milliseconds(30)).has_value());
  members.store()->set("key", "1");
  CHECK(members.store()->get("key", milliseconds(0)) == "1");
}

TEST_CASE("a watch reports the next death once, and neither a rank that joins nor one that ends") {
  JobOfRanks job;
  job.set_members(1, "0 1 2 died");
  Membership members(job.store(), 0, 4);
  members.renew(kLimit);
  std::promise<void> died;
  const std::jthread watch = members.watch([&] { died.set_value(); });
  const auto is_reported = [report = died.get_future()](milliseconds limit) {
    return report.wait_for(limit) == std::future_status::ready;
  };
  job.set_members(2, "0 1 2 3 ");
  job.set_members(3, "0 1 2 ");
  CHECK_FALSE(is_reported(milliseconds(100)));
  job.set_members(4, "0 1 died");
  CHECK(is_reported(kLimit));
  job.set_members(5, "0 died");
}
