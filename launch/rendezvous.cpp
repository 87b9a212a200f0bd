#include "launch/rendezvous.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "ddprun/error.hpp"
#include "launch/net/address.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {
namespace {

using std::chrono::milliseconds;

class PrefixedStore final : public Store {
 public:
  PrefixedStore(Store& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  void set(const std::string& key, std::string_view value) override { store_.set(prefix_ + key, value); }
  std::optional<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    return store_.get(prefix_ + key, timeout);
  }
  std::vector<std::string> allgather(const std::string& name, int rank, int size, std::string_view value,
                                     std::chrono::milliseconds timeout) override {
    return store_.allgather(prefix_ + name, rank, size, value, timeout);
  }

 private:
  Store& store_;
  const std::string prefix_;
};

std::unique_ptr<Store> open(World& world, milliseconds timeout) {
  if (world.is_own()) return own_store(world, timeout);
  StoreAddress& address = world.server;
  address = {world.master_addr, world.master_port, {}};
  if (world.agent_store) {
    address.port = port_of(world.job + "." + std::to_string(world.master_port));
    if (world.local_size == world.size) address.host = "127.0.0.1";
  }
  address.secret = required_secret(address.host, world.insecure);
  return world.rank == 0 ? hosted_store(address, timeout) : net_store(address, timeout);
}

// `[optimizer] "lr = 0.1" and "lr = 0.2"`: the first different lines, with their table.
std::string difference_of(const std::string& a, const std::string& b) {
  const Difference lines = first_difference(a, b);
  return lines.a == lines.b ? "" : lines.table + "\"" + lines.a + "\" and \"" + lines.b + "\"";
}

}  // namespace

std::unique_ptr<Store> own_store(World& world, milliseconds timeout) {
  if (world.on_one_host()) return folder_store(world.job_dir);
  world.server = {world.master_addr, world.master_port, secret_of_environment()};
  return net_store(world.server, timeout);
}

std::unique_ptr<Store> open_store(World& world, milliseconds timeout) {
  if (world.size == 1) {
    world.local_size = 1;
    return nullptr;
  }
  auto store = open(world, timeout);
  locate(world, *store, timeout);
  return store;
}

Difference first_difference(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  Difference lines;
  while (lines.a == lines.b && (left || right)) {
    if (lines.a.starts_with('[')) lines.table = lines.a + " ";
    if (!std::getline(left, lines.a)) lines.a = "nothing";
    if (!std::getline(right, lines.b)) lines.b = "nothing";
  }
  return lines;
}

std::unique_ptr<Store> prefixed_store(Store& store, std::string prefix) {
  return std::make_unique<PrefixedStore>(store, std::move(prefix));
}

Secret required_secret(const std::string& host, bool insecure) {
  Secret secret = secret_of_environment();
  if (!secret.empty()) return secret;
  if (insecure) return kKnownSecret;
  if (std::ranges::all_of(addresses_of(host), is_loopback)) return secret;  // only this host's processes can reach it
  throw Error(
      ExitCode::rendezvous,
      "processes of other hosts can reach " + host +
          ", and the job has no secret: set DDPRUN_SECRET to the output of `openssl rand -hex 32` on all hosts, "
          "or launch.insecure = true on a network that you trust");
}

void compare_identities(Store& store, int rank, int size, const std::string& mine, std::chrono::milliseconds timeout,
                        const IdentityWords& words) {
  if (rank == 0) store.set("identity", mine);
  const std::string difference = difference_of(store.require("identity", timeout), mine);
  int other = 0;
  for (const std::string& each : store.allgather("differences", rank, size, difference, timeout)) {
    if (!each.empty()) {
      throw Error(ExitCode::rendezvous, words.process + " 0 and " + words.process + " " + std::to_string(other) + " " +
                                            words.differ + ": " + each + "; " + words.advice);
    }
    ++other;
  }
}

void require_identity(Store& store, const std::string& mine, milliseconds timeout, const IdentityWords& words) {
  const std::string difference = difference_of(store.require("identity", timeout), mine);
  if (difference.empty()) return;
  throw Error(ExitCode::rendezvous,
              words.process + " 0 and this one " + words.differ + ": " + difference + "; " + words.advice);
}

}  // namespace ddprun::launch
