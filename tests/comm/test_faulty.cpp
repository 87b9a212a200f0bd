#include <doctest/doctest.h>

#include <csignal>

#include "comm/faulty_backend.hpp"
#include "comm/single_process_backend.hpp"
#include "support/error_of.hpp"
#include "tools/conformance/ranks.hpp"

namespace ddprun::comm {

using namespace std::chrono_literals;
using testing::error_of;

TEST_CASE("a fault happens at its collective and at no other") {
  const auto backend = faulty(single_process_backend(), {{2, Fail{ExitCode::peer, "a test's fault"}}});
  float value = 3.0F;
  CHECK(error_of([&] { backend->barrier()->wait(1s); }) == "no error");
  CHECK(error_of([&] {
          backend->allreduce(&value, {&value, 1}, Op::sum);
        }) == "5: solo: rank 0: allreduce 2 (float32 x 1, sum): a test's fault");
  CHECK(error_of([&] { backend->barrier()->wait(1s); }) == "no error");
}

TEST_CASE("a delayed collective begins no sooner than its delay, and then gives the right values") {
  const auto backend = faulty(single_process_backend(), {{1, Delay{30ms}}});
  const float send = 3.0F;
  float recv = 0.0F;
  const auto begin = std::chrono::steady_clock::now();
  backend->allreduce(&send, {&recv, 1}, Op::sum)->wait(1s);
  CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
  CHECK(recv == 3.0F);
}

TEST_CASE("a rank that dies, dies by SIGKILL at its collective") {
  const auto outcomes = testing::run_ranks(1, testing::As::processes, 20s, [](testing::Rank& rank) {
    const auto backend = faulty(single_process_backend(), {{2, Die{}}});
    backend->barrier()->wait(1s);
    rank.report("lived through the first");
    backend->barrier()->wait(1s);
    rank.report("lived through the second");
  });
  CHECK(outcomes[0].end == testing::Outcome::End::killed);
  CHECK(outcomes[0].number == SIGKILL);
  CHECK(outcomes[0].records == std::vector<std::string>{"lived through the first"});
}

}  // namespace ddprun::comm
