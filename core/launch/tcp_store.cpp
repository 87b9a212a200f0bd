#include "launch/tcp_store.hpp"

#include <c10/util/Flags.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstdlib>
#include <string>

#include "ddprun/error.hpp"
#include "launch/meeting.hpp"
#include "launch/net/net_store.hpp"

C10_DECLARE_int(caffe2_log_level);

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

// TCPStore logs each wait and each failed attempt to connect, with a stack trace. Errors say the same in one line.
void silence_c10d() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

// The message without c10's stack trace, which begins after the first line break.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Rank 0 passes `text` to the other ranks through the agent's store.
std::string pass_on(const World& world, const std::string& text, milliseconds timeout) try {
  silence_c10d();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world.master_port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  const auto agent = c10::make_intrusive<c10d::TCPStore>(world.master_addr, options);
  const std::string key = "ddprun/" + world.job + "/store";
  if (world.rank == 0) agent->set(key, std::vector<uint8_t>(text.begin(), text.end()));
  const std::vector<uint8_t> bytes = agent->get(key);
  return {bytes.begin(), bytes.end()};
} catch (const std::exception& error) {
  throw Error(ExitCode::rendezvous, "torchrun's store at " + world.master_addr + ":" +
                                        std::to_string(world.master_port) + " (MASTER_ADDR, MASTER_PORT), within " +
                                        std::to_string(timeout.count()) + " ms: " + first_line(error));
}

std::unique_ptr<Store> open_through_agent(const World& world, milliseconds timeout) {
  StoreAddress address{world.master_addr, 0, {}};
  std::unique_ptr<Store> store;
  if (world.rank == 0) {
    address.secret = make_secret();
    store = hosted_store(address, timeout);
  }
  const std::string line = pass_on(world, std::to_string(address.port) + " " + to_hex(address.secret), timeout);
  if (world.rank == 0) return store;
  const std::size_t space = std::min(line.find(' '), line.size() - 1);
  address.port = std::atoi(line.c_str());
  address.secret = from_hex(line.substr(space + 1), "the secret in torchrun's store");
  return net_store(address, timeout);
}

}  // namespace

std::unique_ptr<Store> open_any_store(World& world, milliseconds timeout) {
  if (!world.agent_store || world.is_own() || world.size == 1) return open_store(world, timeout);
  auto store = open_through_agent(world, timeout);
  find_place(world, *store, timeout);
  return store;
}

}  // namespace ddprun::launch
