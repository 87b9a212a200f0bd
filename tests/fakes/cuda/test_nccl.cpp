// The fake NCCL gives NCCL's results between processes.
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "gpu.hpp"
#include "testing/ranks.hpp"

namespace ddprun::testing {
namespace {

constexpr std::chrono::seconds kLimit{30};

const auto kStream = reinterpret_cast<cudaStream_t>(std::intptr_t{5});

// The communicator of a rank; destroyed at the end.
class Joined {
 public:
  explicit Joined(Rank& rank, int size) {
    ncclUniqueId mine{};
    std::vector<ncclUniqueId> all(static_cast<std::size_t>(size));
    if (rank.rank() == 0) ncclGetUniqueId(&mine);
    rank.allgather(&mine, sizeof mine, all.data());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclCommInitRankConfig(&comm_, size, all[0], rank.rank(), &config);
    await_state();
  }
  ~Joined() { ncclCommAbort(comm_); }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  ncclComm_t get() const { return comm_; }
  // The state once nothing is in progress.
  ncclResult_t await_state() const {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      ncclCommGetAsyncError(comm_, &state);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return state;
  }

 private:
  ncclComm_t comm_ = nullptr;
};

// The first value that rank 0 of `size` has after `body`, which gets the rank's number as memory of `Element`.
template <class Element>
double reduced(int size, ncclDataType_t type, ncclRedOp_t op) {
  const auto outcomes = run_ranks(size, As::processes, kLimit, [&](Rank& rank) {
    const Joined joined(rank, size);
    std::vector<Element> values(3, static_cast<Element>(rank.rank() + 2));
    ncclAllReduce(values.data(), values.data(), values.size(), type, op, joined.get(), kStream);
    cudaStreamSynchronize(kStream);
    rank.report(std::to_string(static_cast<double>(values[2])));
  });
  REQUIRE(failures(outcomes) == "");
  for (const Outcome& outcome : outcomes) CHECK(outcome.records == outcomes[0].records);
  return std::stod(outcomes[0].records.at(0));
}

TEST_CASE("every type and operation") {
  CHECK(reduced<float>(3, ncclFloat32, ncclSum) == 2 + 3 + 4);
  CHECK(reduced<float>(3, ncclFloat32, ncclAvg) == 3);
  CHECK(reduced<double>(3, ncclFloat64, ncclProd) == 2 * 3 * 4);
  CHECK(reduced<_Float16>(3, ncclFloat16, ncclMax) == 4);
  CHECK(reduced<_Float16>(2, ncclFloat16, ncclAvg) == 2.5);
  CHECK(reduced<std::int8_t>(2, ncclInt8, ncclMin) == 2);
  CHECK(reduced<std::uint8_t>(2, ncclUint8, ncclSum) == 5);
  CHECK(reduced<std::int32_t>(2, ncclInt32, ncclSum) == 5);
  CHECK(reduced<std::int64_t>(2, ncclInt64, ncclProd) == 6);
}

TEST_CASE("bfloat16 is rounded to nearest") {
  const auto outcomes = run_ranks(2, As::processes, kLimit, [](Rank& rank) {
    const Joined joined(rank, 2);
    // 1 and 2^-8 x 1.5: nearer to 1 + 2^-7 than to 1
    std::uint16_t value = rank.rank() == 0 ? 0x3f80 : 0x3bc0;
    ncclAllReduce(&value, &value, 1, ncclBfloat16, ncclSum, joined.get(), kStream);
    cudaStreamSynchronize(kStream);
    rank.report(std::to_string(value));
  });
  REQUIRE(failures(outcomes) == "");
  CHECK(outcomes[1].records.at(0) == std::to_string(0x3f81));
}

TEST_CASE("broadcast, allgather and reduce_scatter, in the order of the stream") {
  const auto outcomes = run_ranks(3, As::processes, kLimit, [](Rank& rank) {
    const Joined joined(rank, 3);
    std::vector<float> all(3), own(1), one = {static_cast<float>(rank.rank() + 1)};
    ncclAllGather(one.data(), all.data(), 1, ncclFloat32, joined.get(), kStream);               // 1 2 3
    ncclReduceScatter(all.data(), own.data(), 1, ncclFloat32, ncclSum, joined.get(), kStream);  // 3 x (rank + 1)
    ncclBroadcast(own.data(), own.data(), 1, ncclFloat32, 2, joined.get(), kStream);            // 9
    cudaStreamSynchronize(kStream);
    rank.report(std::to_string(all[0] + 10 * all[1] + 100 * all[2] + 1000 * own[0]));
  });
  REQUIRE(failures(outcomes) == "");
  for (const Outcome& outcome : outcomes) CHECK(std::stod(outcome.records.at(0)) == 9321);
}

TEST_CASE("different calls on two ranks, or a rank that has ended, are an error on the other ranks") {
  for (const bool gone : {true, false}) {
    CAPTURE(gone);
    const auto outcomes = run_ranks(2, As::processes, kLimit, [gone](Rank& rank) {
      const Joined joined(rank, 2);
      if (gone && rank.rank() == 1) return;
      std::vector<float> values(3);
      ncclAllReduce(values.data(), values.data(), rank.rank() == 0 ? 3 : 2, ncclFloat32, ncclSum, joined.get(),
                    kStream);
      ncclResult_t state = ncclSuccess;
      while (state == ncclSuccess) {
        ncclCommGetAsyncError(joined.get(), &state);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      rank.report(std::to_string(state) + " " + ncclGetLastError(nullptr));
    });
    REQUIRE(failures(outcomes) == "");
    CHECK(outcomes[0].records.at(0) ==
          (gone ? "6 NET/Socket : socketProgress: Connection closed by remote peer"
                : "2 NET/Socket : peer message truncated : AllReduce 8 bytes instead of AllReduce 12 bytes"));
  }
}

TEST_CASE("a stream that did not wait for the collective is detected") {
  const auto outcomes = run_ranks(2, As::processes, kLimit, [](Rank& rank) {
    const Joined joined(rank, 2);
    void* memory = nullptr;
    ncclMemAlloc(&memory, 12);
    cudaMemset(memory, 0, 12);  // on the default stream
    rank.report(std::to_string(ncclAllReduce(memory, memory, 3, ncclFloat32, ncclSum, joined.get(), kStream)));
    cudaDeviceSynchronize();
    rank.report(std::to_string(ncclAllReduce(memory, memory, 3, ncclFloat32, ncclSum, joined.get(), kStream)));
    rank.report(std::to_string(cudaMemset(memory, 0, 12)));
    cudaStreamSynchronize(kStream);
    rank.report(std::to_string(cudaMemset(memory, 0, 12)));
    ncclMemFree(memory);
  });
  REQUIRE(failures(outcomes) == "");
  const std::vector<std::string> expected = {std::to_string(ncclUnhandledCudaError), std::to_string(ncclSuccess),
                                             std::to_string(cudaErrorIllegalAddress), std::to_string(cudaSuccess)};
  CHECK(outcomes[0].records == expected);
  CHECK(outcomes[1].records == expected);
}

}  // namespace
}  // namespace ddprun::testing
