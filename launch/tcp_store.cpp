#include "launch/rendezvous.hpp"

#include <c10/util/Flags.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/net_store.hpp"

C10_DECLARE_int(caffe2_log_level);

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

milliseconds until(Clock::time_point deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(1));
}

c10d::TCPStore connect(const World& world, milliseconds timeout) {
  // TCPStore logs each wait and each failed attempt to connect, with a stack trace. Errors say the same in one line.
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world.master_port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10d::TCPStore(world.master_addr, options);
}

// The key may be of an earlier attempt. That store has ended, or it already has this rank. Then rank 0 has not yet
// written the new address.
std::unique_ptr<Store> join(World& world, c10d::TCPStore& agent, const std::string& key, Clock::time_point deadline) {
  constexpr milliseconds kPause{20}, kMostPatience{8000};
  for (milliseconds patience{250};; patience = std::min(2 * patience, kMostPatience)) {
    agent.setTimeout(until(deadline));
    std::istringstream text(agent.get_to_str(key));  // waits until it is written
    std::string secret;
    text >> world.server.port >> secret;
    world.server.secret = from_hex(secret, "the secret in torchrun's store");
    try {
      auto store = net_store(world.server, std::min(patience, until(deadline)));
      store->set("rank " + std::to_string(world.rank), "");
      return store;
    } catch (const Error&) {
      if (until(deadline) <= kPause) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Under a key of torchrun's store, rank 0 writes the port and the secret of ddprun's store. The key is the same in all
// attempts: torchrun gives the ranks no number of the attempt that is equal on all hosts.
std::unique_ptr<Store> open_through_agent(World& world, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const std::string key = "ddprun/" + world.job + "/store";
  world.server = {world.local_size == world.size ? "127.0.0.1" : world.master_addr, 0, make_secret()};
  auto hosted = world.rank == 0 ? hosted_store(world.server, timeout) : nullptr;
  try {
    c10d::TCPStore agent = connect(world, timeout);
    if (hosted == nullptr) return join(world, agent, key, deadline);
    agent.c10d::Store::set(key, std::to_string(world.server.port) + " " + to_hex(world.server.secret));
    return hosted;
  } catch (const std::exception& error) {
    const std::string text = error.what();  // c10's stack trace begins after the first line break
    throw Error(ExitCode::rendezvous, "torchrun's store at " + world.master_addr + ":" +
                                          std::to_string(world.master_port) + " (MASTER_ADDR, MASTER_PORT), within " +
                                          std::to_string(timeout.count()) + " ms: " + text.substr(0, text.find('\n')));
  }
}

}  // namespace

std::unique_ptr<Store> open_any_store(World& world, milliseconds timeout) {
  if (!world.agent_store || world.is_own() || world.size == 1) return open_store(world, timeout);
  auto store = open_through_agent(world, timeout);
  locate(world, *store, timeout);
  return store;
}

}  // namespace ddprun::launch
