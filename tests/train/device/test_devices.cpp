#include "support/torch_test.hpp"

#include <ATen/autocast_mode.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/error_of.hpp"
#include "testing/ranks.hpp"
#include "train/device/dp_devices.hpp"

namespace ddprun::train {
namespace {

const auto nothing = [](int) {};

TEST_CASE("each device keeps its thread, and device 0 is the caller's") {
  std::vector<std::thread::id> began(3), first(3), second(3);
  const auto note = [](std::vector<std::thread::id>& ids) {
    return [&ids](int device) { ids[static_cast<std::size_t>(device)] = std::this_thread::get_id(); };
  };
  DeviceThreads threads(3, note(began));
  threads.run(3, note(first));
  threads.run(3, note(second));
  CHECK(threads.devices() == 3);
  CHECK(first[0] == std::this_thread::get_id());
  CHECK(std::set(first.begin(), first.end()).size() == 3);
  CHECK(first == began);
  CHECK(first == second);
}

TEST_CASE("only the requested number of devices work") {
  DeviceThreads threads(4, nothing);
  std::atomic<int> worked{0};
  threads.run(2, [&](int) { ++worked; });
  CHECK(worked == 2);
  threads.run(1, [&](int) { ++worked; });
  CHECK(worked == 3);
}

TEST_CASE("devices have the caller's grad mode and autocast, and only for that call") {
  DeviceThreads threads(2, nothing);
  bool grad = true, autocast = false;
  torch::ScalarType type{};
  const auto read_modes = [&](int device) {
    if (device == 0) return;
    grad = torch::GradMode::is_enabled();
    autocast = at::autocast::is_autocast_enabled(torch::kCPU);
    type = at::autocast::get_autocast_dtype(torch::kCPU);
  };
  {
    const torch::NoGradGuard no_grad;
    const auto before = at::autocast::get_autocast_dtype(torch::kCPU);
    at::autocast::set_autocast_dtype(torch::kCPU, torch::kHalf);
    at::autocast::set_autocast_enabled(torch::kCPU, true);
    threads.run(2, read_modes);
    at::autocast::set_autocast_enabled(torch::kCPU, false);
    at::autocast::set_autocast_dtype(torch::kCPU, before);
  }
  CHECK_FALSE(grad);
  CHECK(autocast);
  CHECK((type == torch::kHalf));  // doctest cannot print these types
  threads.run(2, read_modes);
  CHECK(grad);
  CHECK_FALSE(autocast);
}

TEST_CASE("every device has the caller's number of compute threads") {
  // In a subprocess, because Torch's threads do not survive a fork, which later tests use.
  CHECK(testing::failures(testing::run_ranks(1, testing::As::processes, std::chrono::seconds(60), [](testing::Rank&) {
          torch::set_num_threads(3);
          DeviceThreads threads(2, nothing);
          std::vector<int> counts(2);
          threads.run(2, [&](int device) { counts[static_cast<std::size_t>(device)] = torch::get_num_threads(); });
          if (counts != std::vector<int>{3, 3}) throw std::runtime_error("other counts");
        })) == "");
}

TEST_CASE("the first device's exception is thrown when all have ended, and the devices can run again") {
  DeviceThreads threads(4, nothing);
  std::atomic<int> ended{0};
  const auto work = [&](int device) {
    if (device == 1) throw std::out_of_range("device 1");
    if (device == 3) throw std::logic_error("device 3");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++ended;
  };
  CHECK_THROWS_WITH_AS(threads.run(4, work), "device 1", std::out_of_range);
  CHECK(ended == 2);
  threads.run(4, [&](int) { ++ended; });
  CHECK(ended == 6);
}

}  // namespace
}  // namespace ddprun::train
