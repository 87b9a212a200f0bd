// Which calls of NCCL and CUDA serve a collective, in which order, and that none of them waits for the GPU.
#include <doctest/doctest.h>

#include "plugins/comm_nccl/process.hpp"

namespace ddprun::testing {
namespace {

using namespace std::chrono_literals;

// The calls of body(backend), after two ranks have joined.
std::string calls_of(const std::function<void(CommBackend&)>& body) {
  return run_in_subprocess([&](Fake& state) {
    const auto backend = comm::join(nccl(), options_of(2));
    const std::size_t first = count_of_calls(state);
    body(*backend);
    return calls(state, first);
  });
}

TEST_CASE("an allreduce is ordered on the caller's stream by two events, and wait does not block") {
  CHECK(calls_of([](CommBackend& backend) {
          fake().gpu_hangs = true;  // the GPU does not get there; the host continues
          Work work = backend.allreduce(on_stream(7, 5));
          if (!work.test()) throw std::runtime_error("test: not done");
          const comm::Execution by = work.wait(0ms);
          if (by.algorithm != "nccl") throw std::runtime_error(by.algorithm);
          fake().gpu_hangs = false;
        }) ==
        "stream 5 records event 1\n"
        "stream 1500 waits for event 1\n"
        "ncclAllReduce count 7 type 7 op 0 stream 1500\n"
        "stream 1500 records event 2\n"
        "stream 5 waits for event 2\n");
}

TEST_CASE("a collective is entered in the watch list once NCCL has accepted it") {
  CHECK(calls_of([](CommBackend& backend) {
          fake().turns = 20;
          backend.allreduce(on_stream(1, 5)).wait(1s);
        }) ==
        "stream 5 records event 1\n"
        "stream 1500 waits for event 1\n"
        "ncclAllReduce count 1 type 7 op 0 stream 1500\n"
        "stream 1500 records event 2\n"
        "stream 5 waits for event 2\n");
}

// Only the calls of NCCL.
std::string nccl_calls(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    if (text.compare(at, 4, "nccl") == 0) result += text.substr(at, end - at);
    at = end;
  }
  return result;
}

TEST_CASE("every dtype and op maps to NCCL's") {
  const std::pair<DType, int> dtypes[] = {{DType::float16, 6}, {DType::bfloat16, 9}, {DType::float32, 7},
                                          {DType::float64, 8}, {DType::int8, 0},     {DType::int32, 2},
                                          {DType::int64, 4},   {DType::uint8, 1}};
  for (const auto& [dtype, number] : dtypes) {
    const std::string text = calls_of(
        [dtype = dtype](CommBackend& backend) { backend.allreduce(on_stream(3, 5, dtype, Op::max)).wait(1s); });
    CHECK(nccl_calls(text) == "ncclAllReduce count 3 type " + std::to_string(number) + " op 2 stream 1500\n");
  }
  const std::pair<Op, int> ops[] = {{Op::sum, 0}, {Op::product, 1}, {Op::max, 2}, {Op::min, 3}, {Op::avg, 4}};
  for (const auto& [op, number] : ops) {
    const std::string text =
        calls_of([op = op](CommBackend& backend) { backend.allreduce(on_stream(3, 5, DType::float32, op)).wait(1s); });
    CHECK(nccl_calls(text) == "ncclAllReduce count 3 type 7 op " + std::to_string(number) + " stream 1500\n");
  }
}

TEST_CASE("int16 is moved as bytes, and not reduced") {
  CHECK(nccl_calls(calls_of([](CommBackend& backend) {
          Collective call = on_stream(3, 5, DType::int16);
          call.root = 1;
          backend.broadcast(call).wait(1s);
        })) == "ncclBroadcast count 6 type 1 op 1 stream 1500\n");
  CHECK(calls_of([](CommBackend& backend) {
          const std::string error = error_of([&] { backend.allreduce(on_stream(3, 5, DType::int16)); });
          fake().record(error);
        }).find("takes sum of int16") != std::string::npos);
}

TEST_CASE("the other collectives, and one without elements") {
  static double other[64];
  CHECK(nccl_calls(calls_of([](CommBackend& backend) {
          const auto out_of_place = [](Collective call) {
            call.send = other;
            return call;
          };
          backend.allgather(out_of_place(on_stream(2, 5))).wait(1s);
          backend.reduce_scatter(out_of_place(on_stream(2, 5, DType::float32, Op::avg))).wait(1s);
          backend.barrier().wait(1s);
          backend.allreduce(out_of_place(on_stream(0, 5))).wait(1s);
        })) ==
        "ncclAllGather count 8 type 1 op 0 stream 1500\n"
        "ncclReduceScatter count 2 type 7 op 4 stream 1500\n"
        "ncclAllReduce count 1 type 2 op 0 stream 1500\n");
}

TEST_CASE("an exchange is one group of sends and receives, without the empty blocks") {
  CHECK(calls_of([](CommBackend& backend) {
          static char bytes[30];
          const std::vector<Block> send{{bytes, 3}, {bytes + 3, 4}}, recv{{bytes + 10, 3}, {nullptr, 0}};
          void* const stream = on_stream(0, 5).stream;
          const comm::Execution by = backend.exchange({send, recv, Memory::cuda, stream}).wait(1s);
          if (by.algorithm != "nccl") throw std::runtime_error(by.algorithm);
          const std::vector<Block> none(2);
          backend.exchange({none, none, Memory::cuda, stream}).wait(1s);
        }) ==
        "stream 5 records event 1\n"
        "stream 1500 waits for event 1\n"
        "ncclGroupStart\n"
        "ncclSend count 3 type 1 op 0 stream 1500\n"
        "ncclRecv count 3 type 1 op 0 stream 1500\n"
        "ncclSend count 4 type 1 op 1 stream 1500\n"
        "ncclGroupEnd\n"
        "stream 1500 records event 2\n"
        "stream 5 waits for event 2\n"
        "stream 5 records event 3\n"
        "stream 1500 waits for event 3\n"
        "ncclGroupStart\n"
        "ncclGroupEnd\n"
        "stream 1500 records event 4\n"
        "stream 5 waits for event 4\n");
}

TEST_CASE("NCCL allocates and registers memory, and freeing it waits for the GPU") {
  CHECK(calls_of([](CommBackend& backend) {
          const auto memory = backend.allocate(5000);
          if (reinterpret_cast<uintptr_t>(memory.get()) % 4096 != 0) throw std::runtime_error("not page-aligned");
        }) ==
        "ncclMemAlloc 5000\n"
        "ncclCommRegister 5000\n"
        "cudaDeviceSynchronize\n"
        "ncclCommDeregister\n"
        "ncclMemFree\n");
}

}  // namespace
}  // namespace ddprun::testing
