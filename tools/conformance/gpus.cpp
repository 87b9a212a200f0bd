#include "tools/conformance/gpus.hpp"

#include "cuda/driver.hpp"
#include "ddprun/error.hpp"

namespace ddprun::conformance {
namespace {

constexpr milliseconds kPatience{120'000};  // the first use of a GPU can take long

void join_alone(const Settings& settings) {
  comm::JoinOptions alone{.device = device_of(settings, 0), .options = settings.options};
  alone.allgather = [](std::string_view mine) { return std::vector<std::string>{std::string(mine)}; };
  comm::join(*settings.plugin.table, alone);
}

}  // namespace

Gpus find_gpus(const Settings& settings) {
  const auto outcome = testing::run_ranks(1, testing::As::processes, kPatience, [&](testing::Rank& rank) {
                         const std::size_t count = cuda::gpus().size();
                         const Place place(device_of(settings, 0));
                         join_alone(settings);
                         rank.report(std::to_string(count));
                       }).front();
  if (outcome.ok() && !outcome.records.empty()) return {std::stoi(outcome.records.front()), ""};
  if (outcome.end == testing::Outcome::End::threw && outcome.number == static_cast<int>(ExitCode::plugin)) {
    return {0, outcome.error};
  }
  throw Error(ExitCode::failure, "a world of one rank: " + outcome.describe());
}

std::string why_no_world(const Settings& settings, const Gpus& gpus, int size) {
  if (settings.memory == Memory::host || settings.devices.size() == 1) return "";
  const bool named = !settings.devices.empty();
  const std::size_t count = named ? settings.devices.size() : static_cast<std::size_t>(gpus.count);
  if (static_cast<std::size_t>(size) <= count) return "";
  return std::string(named ? "--device names " : "this machine has ") + std::to_string(count) +
         (count == 1 ? " GPU" : " GPUs") + "; with --device 0 all ranks share one, if the plugin allows it";
}

}  // namespace ddprun::conformance
