// comm_plugin.hpp: what stands between the C table and a backend that is a C++ class.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"

namespace {

using ddprun::Failure;

// A backend that counts calls and does what a test tells it to.
struct Script {
  std::function<void()> on_create = [] {};
  std::function<void()> on_call = [] {};
  std::function<void()> on_wait = [] {};
  int calls = 0, waits = 0, aborts = 0, destroyed = 0;
};
Script script;

class Scripted final : public ddprun::Communicator {
 public:
  explicit Scripted(const ddprun::Host& host) {
    host.refuse_options_beyond({"interface", "tls"});
    script.on_create();
  }
  ~Scripted() override { ++script.destroyed; }
  ddprun::Request& allreduce(const ddprun_collective&) override { return called(); }
  ddprun::Request& broadcast(const ddprun_collective&) override { return called(); }
  ddprun::Request& allgather(const ddprun_collective&) override { return called(); }
  ddprun::Request& reduce_scatter(const ddprun_collective&) override { return called(); }
  ddprun::Request& barrier() override { return called(); }
  void abort() noexcept override { ++script.aborts; }
  void wait(ddprun::Request&, std::chrono::milliseconds) override {
    ++script.waits;
    script.on_wait();
  }

 private:
  ddprun::Request& called() {
    ++script.calls;
    script.on_call();
    return request_;
  }
  ddprun::Request request_{"ring", "paper"};
};

// ring takes all, fast takes sums of float32 only.
constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("ring", ddprun::bits(DDPRUN_FLOAT32, DDPRUN_INT32), ddprun::kAllOps),
    ddprun::algorithm("fast", ddprun::bits(DDPRUN_FLOAT32), ddprun::bits(DDPRUN_SUM)),
};
constexpr ddprun::CommPluginInfo kInfo = {"scripted", "1", "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING, kAlgorithms};
constexpr ddprun_comm_plugin kTable = ddprun::comm_plugin<Scripted, kInfo>();

// A plugin of both memories, one of whose algorithms takes the host's only.
constexpr ddprun_comm_algorithm kOfBoth[] = {
    ddprun::algorithm("ring", ddprun::kAllDtypes, ddprun::kAllOps),
    ddprun::algorithm("here", ddprun::kAllDtypes, ddprun::kAllOps, ddprun::bits(DDPRUN_HOST)),
};
constexpr ddprun::CommPluginInfo kBothInfo = {"both", "1", "", DDPRUN_CAP_HOST | DDPRUN_CAP_CUDA | DDPRUN_CAP_BLOCKING,
                                              kOfBoth};
constexpr ddprun_comm_plugin kBothTable = ddprun::comm_plugin<Scripted, kBothInfo>();

ddprun_status gather_nothing(void*, const void*, uint64_t, void*) {
  return DDPRUN_INTERNAL;
}

// Rank 1 of 3, and a communicator where create succeeded.
struct Joined {
  explicit Joined(const char* algorithm = "auto", std::vector<ddprun_comm_option> options = {}) : options(options) {
    script = Script{};
    host.struct_size = sizeof host;
    host.rank = 1;
    host.size = 3;
    host.device = -1;
    host.deadline_ms = 1000;
    host.algorithm = algorithm;
    host.options = this->options.data();
    host.option_count = static_cast<uint32_t>(options.size());
    host.error = error.data();
    host.error_size = error.size();
    host.abort_flag = &abort_flag;
    host.allgather = gather_nothing;
  }
  ~Joined() {
    if (comm != nullptr) kTable.destroy(comm);
  }
  ddprun_status create() { return kTable.create(&host, &comm); }
  std::string why() { return kTable.last_error(comm); }

  std::vector<ddprun_comm_option> options;
  std::array<char, 512> error = {};
  int32_t abort_flag = 0;
  ddprun_comm_host host = {};
  ddprun_comm* comm = nullptr;
};

std::array<float, 12> memory;

// Four elements out of place, right for every function.
ddprun_collective call_of(int32_t dtype = DDPRUN_FLOAT32, int32_t op = DDPRUN_SUM) {
  ddprun_collective call = {};
  call.struct_size = sizeof call;
  call.dtype = dtype;
  call.op = op;
  call.send = memory.data();
  call.recv = memory.data() + 6;
  call.count = 2;
  return call;
}

TEST_CASE("a collective gives a request, and waiting for it tells what served it") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  const auto call = call_of();
  ddprun_request* request = nullptr;
  REQUIRE(kTable.allreduce(world.comm, &call, &request) == DDPRUN_OK);
  ddprun_comm_served served = {sizeof served, 0, nullptr, nullptr};
  CHECK(kTable.wait(world.comm, request, 1000, &served) == DDPRUN_OK);
  CHECK(std::string(served.algorithm) == "ring");
  CHECK(std::string(served.transport) == "paper");
}

TEST_CASE("alloc and free are in the table only where they are declared") {
  CHECK((kTable.alloc == nullptr));
  CHECK((kTable.free == nullptr));
}

TEST_CASE("create refuses an unknown option and names the nearest one first") {
  Joined world("auto", {{"interfaec", "eth0"}});
  CHECK(world.create() == DDPRUN_INVALID);
  CHECK(std::string(world.error.data()) == "unknown option comm.options.interfaec: expected \"interface\", \"tls\"");
}

TEST_CASE("create refuses an algorithm that is not declared") {
  Joined world("rign");
  CHECK(world.create() == DDPRUN_UNSUPPORTED);
  CHECK(std::string(world.error.data()) == "no algorithm \"rign\": expected \"ring\", \"auto\", \"fast\"");
}

TEST_CASE("an algorithm of the host's memory is refused on a GPU, and for CUDA memory") {
  Joined world("here");
  world.host.device = 0;
  CHECK(kBothTable.create(&world.host, &world.comm) == DDPRUN_UNSUPPORTED);
  CHECK(std::string(world.error.data()) == "create: this algorithm takes host memory only");
  world.host.device = -1;
  REQUIRE(kBothTable.create(&world.host, &world.comm) == DDPRUN_OK);
  auto call = call_of();
  ddprun_request* request = nullptr;
  CHECK(kBothTable.allreduce(world.comm, &call, &request) == DDPRUN_OK);
  call.memory = DDPRUN_CUDA;
  CHECK(kBothTable.allreduce(world.comm, &call, &request) == DDPRUN_UNSUPPORTED);
  CHECK(kBothTable.broadcast(world.comm, &call, &request) == DDPRUN_OK);
}

TEST_CASE("create refuses a host that breaks the contract") {
  const auto refused = [](const std::function<void(ddprun_comm_host&)>& spoil) {
    Joined world;
    spoil(world.host);
    return world.create() != DDPRUN_OK && world.comm == nullptr;
  };
  CHECK(refused([](auto& host) { host.struct_size -= 1; }));
  CHECK(refused([](auto& host) { host.rank = 3; }));
  CHECK(refused([](auto& host) { host.rank = -1; }));
  CHECK(refused([](auto& host) { host.size = 0; }));
  CHECK(refused([](auto& host) { host.deadline_ms = 0; }));
  CHECK(refused([](auto& host) { host.allgather = nullptr; }));
  CHECK(refused([](auto& host) { host.algorithm = nullptr; }));
  CHECK(refused([](auto& host) { host.device = 0; }));
}

TEST_CASE("an exception in create becomes a status and one line, cut to the host's room") {
  Joined world;
  script.on_create = [] { throw Failure(DDPRUN_PEER_LOST, "two\nlines"); };
  CHECK(world.create() == DDPRUN_PEER_LOST);
  CHECK(std::string(world.error.data()) == "two lines");

  script.on_create = [] { throw std::bad_alloc(); };
  world.host.error_size = 5;
  CHECK(world.create() == DDPRUN_NO_MEMORY);
  CHECK(std::string(world.error.data()) == "out ");
}

TEST_CASE("an exception in a collective becomes a status with its text") {
  const auto status_of = [](const std::function<void()>& thrower, const std::string& text) {
    Joined world;
    REQUIRE(world.create() == DDPRUN_OK);
    script.on_call = thrower;
    const auto call = call_of();
    ddprun_request* request = nullptr;
    const auto status = kTable.allreduce(world.comm, &call, &request);
    CHECK(world.why() == text);
    CHECK(request == nullptr);
    return status;
  };
  CHECK(status_of([] { throw Failure(DDPRUN_MISMATCH, "differs"); }, "differs") == DDPRUN_MISMATCH);
  CHECK(status_of([] { throw std::bad_alloc(); }, "out of memory") == DDPRUN_NO_MEMORY);
  CHECK(status_of([] { throw std::runtime_error("odd"); }, "odd") == DDPRUN_INTERNAL);
  CHECK(status_of([] { throw 7; }, "an exception that is no std::exception") == DDPRUN_INTERNAL);
}

TEST_CASE("arguments that break the contract never reach the backend") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  const auto status_of = [&](ddprun_collective_fn function, const std::function<void(ddprun_collective&)>& spoil) {
    auto call = call_of();
    spoil(call);
    ddprun_request* request = nullptr;
    return function(world.comm, &call, &request);
  };
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.struct_size -= 1; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.dtype = DDPRUN_DTYPE_COUNT; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.dtype = -1; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.op = DDPRUN_OP_COUNT; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.memory = 2; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.memory = DDPRUN_CUDA; }) == DDPRUN_UNSUPPORTED);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.dtype = DDPRUN_FLOAT64; }) == DDPRUN_UNSUPPORTED);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.dtype = DDPRUN_INT32, c.op = DDPRUN_AVG; }) == DDPRUN_UNSUPPORTED);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.send = nullptr; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.recv = nullptr; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.recv = memory.data() + 1; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.count = ~uint64_t{0} / 4; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.broadcast, [](auto& c) { c.root = 3; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.broadcast, [](auto& c) { c.root = -1; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.allgather, [](auto& c) { c.send = memory.data() + 9; }) == DDPRUN_INVALID);
  CHECK(status_of(kTable.reduce_scatter, [](auto& c) { c.recv = memory.data() + 4; }) == DDPRUN_INVALID);
  CHECK(kTable.allreduce(world.comm, nullptr, nullptr) == DDPRUN_INVALID);
  CHECK(script.calls == 0);
}

TEST_CASE("what the contract allows reaches the backend") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  const auto status_of = [&](ddprun_collective_fn function, const std::function<void(ddprun_collective&)>& change) {
    auto call = call_of();
    change(call);
    ddprun_request* request = nullptr;
    return function(world.comm, &call, &request);
  };
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.recv = memory.data(); }) == DDPRUN_OK);
  CHECK(status_of(kTable.allreduce, [](auto& c) { c.count = 0, c.send = c.recv = nullptr; }) == DDPRUN_OK);
  CHECK(status_of(kTable.broadcast, [](auto& c) { c.send = nullptr, c.root = 2; }) == DDPRUN_OK);
  CHECK(status_of(kTable.broadcast, [](auto& c) { c.dtype = DDPRUN_INT8; }) == DDPRUN_OK);
  CHECK(status_of(kTable.allgather, [](auto& c) { c.send = memory.data() + 8; }) == DDPRUN_OK);
  CHECK(status_of(kTable.reduce_scatter, [](auto& c) { c.recv = memory.data() + 2; }) == DDPRUN_OK);
  CHECK(status_of(kTable.barrier, [](auto& c) { c.dtype = 99, c.recv = nullptr; }) == DDPRUN_OK);
  CHECK(script.calls == 7);
}

TEST_CASE("under a named algorithm, allreduce takes what that algorithm declares, and reduce_scatter what any does") {
  Joined world("fast");
  REQUIRE(world.create() == DDPRUN_OK);
  ddprun_request* request = nullptr;
  auto call = call_of();
  CHECK(kTable.allreduce(world.comm, &call, &request) == DDPRUN_OK);
  call.op = DDPRUN_MAX;
  CHECK(kTable.allreduce(world.comm, &call, &request) == DDPRUN_UNSUPPORTED);
  CHECK(kTable.reduce_scatter(world.comm, &call, &request) == DDPRUN_OK);
}

TEST_CASE("after an abort every call ends with DDPRUN_ABORTED, and the backend is called no more") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  kTable.abort(world.comm);
  kTable.abort(world.comm);
  CHECK(script.aborts == 2);
  const auto call = call_of();
  ddprun_request* request = nullptr;
  CHECK(kTable.allreduce(world.comm, &call, &request) == DDPRUN_ABORTED);
  CHECK(kTable.barrier(world.comm, &call, &request) == DDPRUN_ABORTED);
  CHECK(script.calls == 0);
}

TEST_CASE("whatever a call throws because it was aborted, the host sees DDPRUN_ABORTED") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  script.on_call = [&] {
    world.abort_flag = 1;
    throw Failure(DDPRUN_PEER_LOST, "connection closed");
  };
  const auto call = call_of();
  ddprun_request* request = nullptr;
  CHECK(kTable.allreduce(world.comm, &call, &request) == DDPRUN_ABORTED);
}

TEST_CASE("a lost peer or a timeout is the answer to every later call too, with its text") {
  for (const ddprun_status status : {DDPRUN_PEER_LOST, DDPRUN_TIMEOUT}) {
    Joined world;
    REQUIRE(world.create() == DDPRUN_OK);
    script.on_call = [&] { throw Failure(status, "rank 2 has gone"); };
    const auto call = call_of();
    ddprun_request* request = nullptr;
    CHECK(kTable.allreduce(world.comm, &call, &request) == status);
    CHECK(kTable.broadcast(world.comm, &call, &request) == status);
    CHECK(world.why() == "rank 2 has gone");
    CHECK(script.calls == 1);
  }
}

TEST_CASE("wait takes the request back on an aborted communicator too") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  const auto call = call_of();
  ddprun_request* request = nullptr;
  REQUIRE(kTable.allreduce(world.comm, &call, &request) == DDPRUN_OK);
  kTable.abort(world.comm);
  CHECK(kTable.wait(world.comm, request, 1000, nullptr) == DDPRUN_ABORTED);
  CHECK(script.waits == 1);
}

TEST_CASE("destroy destroys the backend") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  kTable.destroy(world.comm);
  world.comm = nullptr;
  CHECK(script.destroyed == 1);
}

TEST_CASE("texts of different lengths are gathered in rank order") {
  Joined world;
  // Rank 0 has "a", this rank "bcd", rank 2 nothing: what the host would gather.
  world.host.allgather = [](void*, const void* send, uint64_t bytes, void* recv) -> ddprun_status {
    if (bytes == sizeof(uint64_t) && *static_cast<const uint64_t*>(send) == 3) {
      const uint64_t lengths[] = {1, 3, 0};
      std::memcpy(recv, lengths, sizeof lengths);
    } else {
      std::memcpy(recv, "a??bcd???", 9);
    }
    return DDPRUN_OK;
  };
  CHECK(ddprun::Host(world.host).allgather("bcd") == std::vector<std::string>{"a", "bcd", ""});
}

TEST_CASE("a failed gathering is told with the host's status") {
  Joined world;
  const ddprun::Host host(world.host);
  CHECK_THROWS_AS(host.allgather("x"), Failure);
}

}  // namespace
