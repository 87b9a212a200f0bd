// comm_plugin.hpp: the adapter between the C table and a C++ backend.
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

using ddprun::CommError;
using ddprun::CommStatus;

// A backend that counts calls and follows the script of a test.
struct Script {
  std::function<void()> on_create = [] {};
  std::function<void()> on_call = [] {};
  std::function<void()> on_wait = [] {};
  std::function<void()> on_async_error = [] {};
  int calls = 0, waits = 0, aborts = 0, destroyed = 0, freed = 0, freed_after_destruction = 0;
};
Script script;

class Scripted final : public ddprun::CommBackend {
 public:
  explicit Scripted(const ddprun::Host& host) : CommBackend(host) { script.on_create(); }
  ~Scripted() override { ++script.destroyed; }
  ddprun::Work allreduce(const ddprun::Collective&) override { return called(); }
  ddprun::Work broadcast(const ddprun::Collective&) override { return called(); }
  ddprun::Work allgather(const ddprun::Collective&) override { return called(); }
  ddprun::Work reduce_scatter(const ddprun::Collective&) override { return called(); }
  ddprun::Work barrier() override { return called(); }
  ddprun::Work exchange(const ddprun::Exchange&) override { return called(); }
  void async_error() override { script.on_async_error(); }
  void abort() noexcept override { ++script.aborts; }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    return {new char[bytes], [](void* memory) {
              ++script.freed;
              script.freed_after_destruction += script.destroyed;
              delete[] static_cast<char*>(memory);
            }};
  }
  ddprun::ExecutionInfo wait(ddprun::Request& request, std::chrono::milliseconds) override {
    ++script.waits;
    script.on_wait();
    return request.info;
  }

 private:
  ddprun::Work called() {
    ++script.calls;
    script.on_call();
    return {*this, request_};
  }
  ddprun::Request request_{{"ring", "paper"}};
};

// ring supports all, fast only sums of float32.
constexpr ddprun_comm_algorithm kAlgorithms[] = {
    ddprun::algorithm("ring", ddprun::bits(ddprun::DType::float32, ddprun::DType::int32), ddprun::kAllOps),
    ddprun::algorithm("fast", ddprun::bits(ddprun::DType::float32), ddprun::bits(ddprun::Op::sum)),
};
constexpr ddprun_option_spec kOptions[] = {
    ddprun::text_option("interface", nullptr, "the network"),
    ddprun::text_option("tls", nullptr, "the transports"),
};
constexpr ddprun::CommPluginInfo kInfo = {"scripted",  "1",     "", DDPRUN_CAP_HOST | DDPRUN_CAP_BLOCKING,
                                          kAlgorithms, kOptions};
constexpr ddprun_comm_plugin kTable = ddprun::comm_plugin<ddprun::make_comm_backend<Scripted>, kInfo>();

// Has every optional slot.
constexpr ddprun::CommPluginInfo kFullInfo = {
    "full", "1", "",
    DDPRUN_CAP_CUDA | DDPRUN_CAP_STREAM_ORDERED | DDPRUN_CAP_ALLOC | DDPRUN_CAP_REDUCE_SCATTER | DDPRUN_CAP_EXCHANGE,
    kAlgorithms};
constexpr ddprun_comm_plugin kFullTable = ddprun::comm_plugin<ddprun::make_comm_backend<Scripted>, kFullInfo>();

ddprun_status gather_nothing(void*, const void*, uint64_t, void*) {
  return DDPRUN_INTERNAL;
}

// Rank 1 of 3, with a communicator if create succeeded.
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

// Four elements out of place, valid for every function.
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

TEST_CASE("a collective returns a request, and waiting for it reports the execution") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  const auto call = call_of();
  ddprun_request* request = nullptr;
  REQUIRE(kTable.allreduce(world.comm, &call, &request) == DDPRUN_OK);
  ddprun_comm_execution execution = {sizeof execution, 0, nullptr, nullptr};
  CHECK(kTable.wait(world.comm, request, 1000, &execution) == DDPRUN_OK);
  CHECK(std::string(execution.algorithm) == "ring");
  CHECK(std::string(execution.transport) == "paper");
}

TEST_CASE("optional slots are in the table only if they are declared") {
  CHECK((kTable.reduce_scatter == nullptr));
  CHECK((kTable.test == nullptr));
  CHECK((kTable.async_error == nullptr));
  CHECK((kTable.alloc == nullptr));
  CHECK((kTable.free == nullptr));
  CHECK((kFullTable.reduce_scatter != nullptr));
  CHECK((kFullTable.test != nullptr));
  CHECK((kFullTable.async_error != nullptr));
  CHECK((kFullTable.alloc != nullptr));
  CHECK((kFullTable.free != nullptr));
}

TEST_CASE("async_error returns the backend's exception, and calls no collective") {
  Joined world;
  REQUIRE(kFullTable.create(&world.host, &world.comm) == DDPRUN_OK);
  CHECK(kFullTable.async_error(world.comm) == DDPRUN_OK);
  script.on_async_error = [] { throw CommError(CommStatus::internal, "the GPU is gone"); };
  CHECK(kFullTable.async_error(world.comm) == DDPRUN_INTERNAL);
  CHECK(world.why() == "the GPU is gone");
  kFullTable.abort(world.comm);
  CHECK(kFullTable.async_error(world.comm) == DDPRUN_ABORTED);
  CHECK(script.calls == 0);
}

TEST_CASE("memory from alloc lives until free, and no longer than its backend") {
  Joined world;
  REQUIRE(kFullTable.create(&world.host, &world.comm) == DDPRUN_OK);
  void *first = nullptr, *second = nullptr;
  REQUIRE(kFullTable.alloc(world.comm, 10, &first) == DDPRUN_OK);
  REQUIRE(kFullTable.alloc(world.comm, 10, &second) == DDPRUN_OK);
  kFullTable.free(world.comm, first);
  CHECK(script.freed == 1);
  kFullTable.free(world.comm, nullptr);
  kFullTable.destroy(world.comm);
  world.comm = nullptr;
  CHECK(script.freed == 2);
  CHECK(script.freed_after_destruction == 0);
}

TEST_CASE("create refuses an unknown option and names the nearest one") {
  Joined world("auto", {{"interfaec", "eth0"}});
  CHECK(world.create() == DDPRUN_INVALID);
  CHECK(std::string(world.error.data()) ==
        "comm.options.interfaec = \"eth0\": backend \"scripted\" has no such option; expected \"interface\" or \"tls\" "
        "(did you mean \"interface\"?)");
}

TEST_CASE("create refuses a host of an older layout") {
  Joined world;
  world.host.struct_size -= 1;
  CHECK(world.create() == DDPRUN_INVALID);
  CHECK(world.comm == nullptr);
  CHECK(std::string(world.error.data()) == "the plugin was built for a newer ddprun than this one; build it again");
}

TEST_CASE("an exception in create becomes a status and one line, cut to the host's buffer") {
  Joined world;
  script.on_create = [] { throw CommError(CommStatus::peer_lost, "two\nlines"); };
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
  CHECK(status_of([] { throw CommError(CommStatus::mismatch, "differs"); }, "differs") == DDPRUN_MISMATCH);
  CHECK(status_of([] { throw std::bad_alloc(); }, "out of memory") == DDPRUN_NO_MEMORY);
  CHECK(status_of([] { throw std::runtime_error("odd"); }, "odd") == DDPRUN_INTERNAL);
  CHECK(status_of([] { throw 7; }, "an exception that is no std::exception") == DDPRUN_INTERNAL);
}

TEST_CASE("after an abort every call ends with DDPRUN_ABORTED, and the backend is not called") {
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

TEST_CASE("whatever an aborted call throws, the host gets DDPRUN_ABORTED") {
  Joined world;
  REQUIRE(world.create() == DDPRUN_OK);
  script.on_call = [&] {
    world.abort_flag = 1;
    throw CommError(CommStatus::peer_lost, "connection closed");
  };
  const auto call = call_of();
  ddprun_request* request = nullptr;
  CHECK(kTable.allreduce(world.comm, &call, &request) == DDPRUN_ABORTED);
}

TEST_CASE("after a lost peer or a timeout every later call returns the same status and text") {
  for (const ddprun_status status : {DDPRUN_PEER_LOST, DDPRUN_TIMEOUT}) {
    Joined world;
    REQUIRE(world.create() == DDPRUN_OK);
    script.on_call = [&] { throw CommError(static_cast<CommStatus>(status), "rank 2 has gone"); };
    const auto call = call_of();
    ddprun_request* request = nullptr;
    CHECK(kTable.allreduce(world.comm, &call, &request) == status);
    CHECK(kTable.broadcast(world.comm, &call, &request) == status);
    CHECK(world.why() == "rank 2 has gone");
    CHECK(script.calls == 1);
  }
}

TEST_CASE("wait releases the request on an aborted communicator too") {
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
  // What the host gathers: rank 0 has "a", this rank "bcd", rank 2 an empty text.
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

TEST_CASE("a failed allgather throws the host's status") {
  Joined world;
  const ddprun::Host host(world.host);
  CHECK_THROWS_AS(host.allgather("x"), CommError);
}

}  // namespace
