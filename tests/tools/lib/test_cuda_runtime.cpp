#include "tools/lib/cuda_runtime.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "cuda/fake_machine.hpp"

namespace ddprun {
namespace {

using testing::error_of;
using testing::function;
using testing::Machine;
using testing::run_with;

Machine with_gpus(std::map<std::string, std::string> variables = {}) {
  return {{DDPRUN_FAKE_LIBCUDA, DDPRUN_FAKE_CUDART}, std::move(variables)};
}

TEST_CASE("data copied to a GPU can be copied back, and cleared memory is zero") {
  CHECK(run_with(with_gpus(), [] {
          const tools::CudaRuntime gpu(1);
          const auto memory = gpu.allocate(8);
          char text[9] = "-------\n";
          gpu.to_device(memory.get(), "written", 8);
          gpu.to_host(text, memory.get(), 8);
          gpu.clear(memory.get(), 3);
          gpu.to_host(text + 4, memory.get(), 4);
          return std::string(text, 4) + (std::memcmp(text + 4, "\0\0\0t", 4) == 0 ? " zeros" : " no zeros");
        }) == "writ zeros");
}

TEST_CASE("memory is aligned, and an allocation of 0 bytes is no error") {
  CHECK(run_with(with_gpus(), [] {
          const tools::CudaRuntime gpu(0);
          const auto nothing = gpu.allocate(0), something = gpu.allocate(3);
          return std::to_string(reinterpret_cast<std::uintptr_t>(nothing.get()) % 256 +
                                reinterpret_cast<std::uintptr_t>(something.get()) % 256);
        }) == "0");
}

TEST_CASE("streams are distinct, and outlive the object that made them") {
  CHECK(run_with(with_gpus(), [] {
          const tools::CudaRuntime gpu(0);
          const auto [one, other] = [] {
            const tools::CudaRuntime short_lived(0);
            return std::pair(short_lived.make_stream(), short_lived.make_stream());
          }();
          gpu.synchronize(one.get());
          return std::string(one != nullptr && one != other ? "two" : "one");
        }) == "two");
}

TEST_CASE("work is done when the call returns, also for later work on another stream") {
  CHECK(run_with(with_gpus(), [] {
          const tools::CudaRuntime gpu(0);
          const auto memory = gpu.allocate(8), one = gpu.make_stream(), other = gpu.make_stream();
          auto* const memset_on = function<int(void*, int, std::size_t, void*)>("cudaMemsetAsync");
          const auto result_on = [&](const std::shared_ptr<void>& stream) {
            return std::to_string(memset_on(memory.get(), 1, 8, stream.get())) + " ";
          };
          gpu.clear(memory.get(), 8);
          std::string results = result_on(one);
          gpu.synchronize(one.get());
          results += result_on(other);
          gpu.synchronize(other.get());
          gpu.to_device(memory.get(), "written", 8);
          results += result_on(one);
          return results + result_on(other);  // without a wait for it
        }) == "0 0 0 700 ");
}

TEST_CASE("memory belongs to the GPU whose runtime allocated it") {
  const std::map<std::string, std::string> small = {{"DDPRUN_FAKE_GPU_MIB", "1"}};  // the second one has two
  CHECK(run_with(with_gpus(small), [] {
          constexpr std::size_t kMost = 600'000;
          std::string errors;
          for (const int device : {0, 1}) {
            const tools::CudaRuntime gpu(device);
            errors += error_of([&] { gpu.allocate(kMost << device); }) + ", ";
          }
          return errors;
        }) == "no error, no error, ");
}

TEST_CASE("each thread has its own current GPU") {
  CHECK(run_with(with_gpus(), [] {
          const tools::CudaRuntime gpu(1);
          std::string error;
          std::thread([&] {
            gpu.make_current();
            error = error_of([&] { gpu.allocate(std::size_t{12} << 30); });  // more than the first GPU has
          }).join();
          return error;
        }) == "no error");
}

TEST_CASE("an error names the call, the GPU and the reason") {
  CHECK(run_with(with_gpus(), [] {
          const std::string error = error_of([] { tools::CudaRuntime(0).allocate(std::size_t{12} << 30); });
          return error + ", then " + std::to_string(function<int()>("cudaGetLastError")());
        }) == "1: CUDA: GPU 0: memory of 12884901888 bytes: out of memory (2), then 0");
}

TEST_CASE("a missing GPU or library is exit code 3") {
  const auto error_of_making = [](int device) { return error_of([=] { tools::CudaRuntime gpu(device); }); };
  CHECK(run_with(with_gpus(), [&] { return error_of_making(2); }) == "3: no GPU 2: this machine has 2, counted from 0");
  CHECK(run_with({{DDPRUN_FAKE_LIBCUDA, DDPRUN_NO_CUDART}, {}}, [&] { return error_of_making(0); }) ==
        "3: libcudart.so.13 has no cudaSetDevice: it is too old, or not NVIDIA's");
}

}  // namespace
}  // namespace ddprun
