#include "launch/members.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <thread>

#include "launch/rendezvous.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using std::chrono::milliseconds;

RankEnd killed(int rank) {
  RankEnd end;
  end.rank = rank;
  end.pid = 4711;
  end.host = "node0";
  end.signal = SIGKILL;
  return end;
}

RankEnd node_of(int first, int ranks) {
  RankEnd end;
  end.rank = first;
  end.lost = ranks;
  end.host = "node1";
  return end;
}

// A job of four ranks. Its members count one node.
class JobOfFour {
 public:
  explicit JobOfFour(int least = 0, milliseconds timeout = milliseconds(60000))
      : members(JobLink(NodeInfo{"node0", 4}), least, timeout, folder_store(folder_.path().string())) {}

  std::string reported(int change) {
    return folder_store(folder_.path().string())->get(members_key(change), milliseconds(0)).value_or("nothing");
  }

 private:
  testing::TempDir folder_;

 public:
  Members members;
};

}  // namespace

TEST_CASE("deaths are reported to the ranks, one by one, until none is left") {
  JobOfFour job;
  const std::string first = job.members.apply({killed(1)}, true);
  CHECK(first == "rank 1 (node0, pid 4711) phase start: killed by signal 9 (SIGKILL); 3 ranks go on");
  CHECK(job.reported(1) == "0 2 3 died");
  job.members.apply({killed(0)}, true);
  CHECK(job.members.apply({killed(3)}, true).ends_with("; 1 rank goes on"));
  CHECK(job.reported(3) == "2 died");
  CHECK_FALSE(job.members.fatal());
  CHECK(job.members.apply({killed(2)}, true).empty());
  REQUIRE(job.members.fatal());
  CHECK(job.members.fatal()->rank == 2);
}

TEST_CASE("a rank that is started again is a member again; one that has ended is none, and that is no news") {
  JobOfFour job;
  job.members.apply({killed(1)}, true);
  const std::string back = job.members.apply({killed(1), true}, true);
  CHECK(back == "rank 1 (node0, pid 4711) has been started again; 4 ranks go on");
  CHECK(job.reported(2) == "0 1 2 3 ");
  RankEnd ended = killed(3);
  ended.signal = 0;
  CHECK(job.members.apply({ended}, true).empty());
  CHECK(job.reported(3) == "0 1 2 ");
}

TEST_CASE("before the first step a death ends the job") {
  JobOfFour job;
  job.members.apply({killed(1)}, false);
  CHECK(job.members.fatal());
  CHECK(job.reported(1) == "nothing");
}

TEST_CASE("a lost node takes its ranks with it; those that had died before are no news") {
  JobOfFour job(-1);
  const std::string lost = job.members.apply({node_of(2, 2)}, true);
  CHECK(lost.starts_with("ranks 2 and 3 (node1): lost: "));
  CHECK(lost.ends_with("; 2 ranks go on"));
  CHECK(job.reported(1) == "0 1 died");
  CHECK(job.members.apply({node_of(2, 2)}, true).empty());
  CHECK(job.reported(2) == "nothing");
}

TEST_CASE("a node that ends after its ranks and all others is no death") {
  JobOfFour job(1);
  job.members.apply({killed(2)}, true);
  for (const int rank : {0, 1, 3}) {
    RankEnd ended = killed(rank);
    ended.signal = 0;
    job.members.apply({ended}, true);
  }
  CHECK(job.members.apply({node_of(2, 2)}, true).empty());
  CHECK_FALSE(job.members.fatal());
}

TEST_CASE("with too few nodes no rank trains until one has come back and has a rank that is ready") {
  JobOfFour job(1);
  CHECK(job.members.apply({node_of(2, 2)}, true).ends_with("; 2 ranks wait until 1 hosts are there, at most 60 s"));
  CHECK(job.members.waits());
  CHECK(job.reported(1) == "died");
  CHECK(job.members.apply({node_of(2, 2), true}, true) == "node1 is back, and starts its ranks");
  CHECK(job.members.waits());
  CHECK(job.reported(2) == "nothing");
  job.members.apply({killed(2), true}, true);
  CHECK_FALSE(job.members.waits());
  CHECK(job.reported(2) == "0 1 2 ");
  CHECK_FALSE(job.members.fatal());
}

TEST_CASE("a stop ends the wait, so that the ranks that are left can save") {
  JobOfFour job(1);
  job.members.apply({node_of(2, 2)}, true);
  job.members.stop_waiting();
  CHECK_FALSE(job.members.waits());
  CHECK(job.reported(2) == "0 1 ");
  job.members.apply({killed(1)}, true);
  CHECK(job.reported(3) == "0 died");
}

TEST_CASE("with too few nodes for too long, the first cause is the lost node") {
  JobOfFour job(1, milliseconds(30));
  job.members.apply({node_of(2, 2)}, true);
  CHECK_FALSE(job.members.fatal());
  std::this_thread::sleep_for(milliseconds(40));
  REQUIRE(job.members.fatal());
  CHECK(job.members.fatal()->lost == 2);
}
