// Virtual ranks in a program of a user.
#include "ddp/launched.hpp"

namespace ddprun::testing {
namespace {

// The hash that all ranks print.
std::string hash_of(int ranks, const std::string& act, const std::string& backend) {
  const Words lines = lines_of(run(ranks, act, backend));
  CHECK(lines == Words(static_cast<std::size_t>(ranks), lines.at(0)));
  return lines.at(0);
}

TEST_CASE("four virtual ranks have the same bits on one rank, two, three and four, over each backend") {
  const std::string expected = hash_of(4, "virtual", "gloo");
  for (const int ranks : {1, 3}) CHECK(hash_of(ranks, "virtual", "gloo") == expected);
  CHECK(hash_of(2, "virtual", "shm") == expected);
}

TEST_CASE("and with a synchronized BatchNorm, also on one rank") {
  const std::string expected = hash_of(4, "virtual_synchronized", "gloo");
  for (const int ranks : {1, 2, 3}) CHECK(hash_of(ranks, "virtual_synchronized", "shm") == expected);
  CHECK(hash_of(1, "virtual", "shm") != expected);
  for (const int ranks : {1, 3}) CHECK(hash_of(ranks, "virtual_two", "shm") == expected);
}

TEST_CASE("virtual ranks that keep buffers of their own have the same bits on one rank and three") {
  CHECK(hash_of(3, "virtual_own_buffers", "shm") == hash_of(1, "virtual_own_buffers", "shm"));
}

TEST_CASE("what cannot be done with virtual ranks has one clear error") {
  const std::string
      count = ": expected a power of two that is at least the number of ranks, 2",
      outside = "with virtual_ranks, call backward() once for each virtual rank, within for_each_virtual_rank()";
  const Words lines = lines_of(run(2, "virtual_refused"));
  const Words expected = {"virtual_ranks = -1" + count,
                          "virtual_ranks = 1" + count,
                          "virtual_ranks = 3" + count,
                          "register_comm_hook: not with virtual_ranks",
                          "join: not with virtual_ranks",
                          "for_each_virtual_rank: the last step has not called backward()",
                          outside,
                          "a collective within for_each_virtual_rank(): the ranks have different numbers of virtual "
                          "ranks, and would not all call it; convert_sync_batchnorm() comes before "
                          "DistributedDataParallel()",
                          "\"norm\" is synchronized over another group than that of DistributedDataParallel, which is "
                          "not possible with virtual_ranks",
                          "for_each_virtual_rank: not within no_sync()"};
  for (const std::string& line : expected) {
    CHECK_MESSAGE(std::count(lines.begin(), lines.end(), line) == 2, line);
  }
  CHECK(lines.size() == 2 * expected.size());
  for (const std::string& line : lines_of(run(2, "virtual_seeds"))) {
    CHECK_MESSAGE(contains(line, "rank 0 has Torch's seed = 0 where rank 1 has Torch's seed = 1"), line);
  }
  CHECK(lines_of(run(1, "virtual_plain")) ==
        Words{"for_each_virtual_rank: set DistributedDataParallelOptions::virtual_ranks"});
}

}  // namespace
}  // namespace ddprun::testing
