// A rank that joins the others through the store of torchrun or of rank 0, and checks what it gets. Its first argument
// selects the test: meet, restart (rank 1 fails in the first attempt), threads, unreachable. With "agent" it is no
// rank, but torchrun's store at MASTER_PORT.
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/rendezvous.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using std::chrono::milliseconds;

constexpr milliseconds kLimit{30000};

void require(bool condition, const char* what) {
  if (!condition) throw Error(ExitCode::failure, what);
}

std::string attempt() {
  const char* count = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return count == nullptr ? "none" : count;
}

void exchange(Store& store, const World& world) {
  const auto value = [](int rank) { return std::string("\0of ", 4) + std::to_string(rank); };
  const auto all = store.allgather("meet", world.rank, world.size, value(world.rank), kLimit);
  require(static_cast<int>(all.size()) == world.size, "allgather gave another number of values");
  for (int rank = 0; rank < world.size; ++rank) {
    require(all[static_cast<std::size_t>(rank)] == value(rank), "allgather gave another value");
  }
}

ExitCode code_of_get(Store& store, const std::string& key, milliseconds limit) try {
  store.require(key, limit);
  return ExitCode::ok;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return error.code();
}

void check_refusals(Store& store, const World& world) {
  const auto begin = std::chrono::steady_clock::now();
  require(code_of_get(store, "nobody's", milliseconds(150)) == ExitCode::rendezvous, "get did not give up");
  require(std::chrono::steady_clock::now() - begin >= milliseconds(150), "get gave up too early");
  require(code_of_get(store, "nobody's", milliseconds(0)) == ExitCode::rendezvous, "get found what nobody set");
  try {
    store.set("mine" + std::to_string(world.rank), "once");
    store.set("mine" + std::to_string(world.rank), "again");
  } catch (const Error& error) {
    require(error.code() == ExitCode::rendezvous, "a second set has another code");
    return;
  }
  throw Error(ExitCode::failure, "a key was set twice");
}

// One thread waits for a key that another sets through the same store.
void check_threads(Store& store, const World& world) {
  const std::string key = "from a thread of " + std::to_string(world.rank);
  std::thread setter([&] {
    std::this_thread::sleep_for(milliseconds(200));
    store.set(key, "value");
  });
  const ExitCode code = code_of_get(store, key, kLimit);
  setter.join();
  require(code == ExitCode::ok, "the waiting thread did not get the value");
}

// The host of the store ends last.
void leave(Store& store, const World& world) {
  if (world.rank > 0) return store.set("end of " + std::to_string(world.rank), "");
  for (int rank = 1; rank < world.size; ++rank) store.require("end of " + std::to_string(rank), kLimit);
}

// Until the test kills this process.
void host_agent_store() {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(std::stoi(std::getenv("MASTER_PORT")));
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore store("127.0.0.1", options);
  std::cout << "serving\n" << std::flush;
  std::this_thread::sleep_for(std::chrono::minutes(5));
}

int run(const std::string& test) {
  if (test == "agent") {
    host_agent_store();
    return 1;
  }
  const auto world = discover(std::nullopt);
  require(world.has_value(), "started by no launcher");
  World own = *world;
  const auto store = open_any_store(own, test == "unreachable" ? milliseconds(1000) : kLimit);
  exchange(*store, *world);
  if (test == "restart" && attempt() == "0") return world->rank == 1 ? 1 : 0;
  check_refusals(*store, *world);
  check_threads(*store, *world);
  leave(*store, *world);
  std::cout << ("rank " + std::to_string(world->rank) + " ok in attempt " + attempt() + "\n") << std::flush;
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc > 1 ? argv[1] : "meet"); } catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return static_cast<int>(error.code());
}
