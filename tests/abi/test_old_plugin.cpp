#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/joined.hpp"
#include "plugin/options.hpp"

namespace ddprun::comm {

constexpr std::chrono::seconds kDeadline(20);

TEST_CASE("a plugin whose table ends before the fields that were appended later is loaded and runs") {
  const plugin::CommPlugin old = plugin::Registry({DDPRUN_OLD_PLUGIN_FOLDER}).comm("old");
  REQUIRE(old.table->struct_size == 168);
  CHECK_FALSE(plugin::option_specs(*old.table).has_value());
  const auto body = [&](testing::Rank& rank) {
    const std::unique_ptr<CommBackend> backend = join(*old.table, options_of(rank));
    std::vector<float> values = {1.0F + static_cast<float>(rank.rank()), 10.0F};
    backend->barrier().wait(kDeadline);
    const ExecutionInfo by =
        backend->allreduce({.send = values.data(), .recv = values.data(), .count = values.size()}).wait(kDeadline);
    if (values != std::vector<float>{6, 30} || by.algorithm != std::string("old")) {
      throw std::runtime_error("a wrong result");
    }
  };
  CHECK(testing::failures(testing::run_ranks(3, testing::As::threads, kDeadline, body)).empty());
}

}  // namespace ddprun::comm
