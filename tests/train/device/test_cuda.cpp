// The message to the user for LibTorch's CUDA errors.
#include "support/torch_test.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::train {
namespace {

constexpr c10::SourceLocation kHere = {"here", __FILE__, __LINE__};

c10::Error error_of_cuda(std::string line) {
  line += "\nCUDA kernel errors might be asynchronously reported at some other API call.\n";
  return {kHere, line};
}

TEST_CASE("an error of Torch is one line; if memory is exhausted, it says what to try") {
  CHECK(error_message(error_of_cuda("CUDA error: an illegal memory access was encountered")) ==
        "CUDA error: an illegal memory access was encountered");
  CHECK(error_message(error_of_cuda("CUDA error: out of memory")) ==
        "CUDA error: out of memory. Try a smaller data.batch_size or fewer ranks per GPU, and data.pin_memory = false");
  CHECK(
      error_message(c10::OutOfMemoryError(
          kHere,
          "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB of which 512 MiB is free. More of it")) ==
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB of which 512 MiB is free. Try a smaller "
      "data.batch_size, a larger train.accumulate, or train.amp = \"bf16\"");
  CHECK(error_message(c10::Error(kHere,
                                 "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
                                 "memory: you tried to allocate 1644167168 bytes. Error code 12 (Cannot allocate "
                                 "memory)")) ==
        "out of memory: a tensor of 1644167168 bytes cannot be allocated. Try a smaller data.batch_size, a larger "
        "train.accumulate, or fewer ranks per host");
  CHECK(error_message(c10::Error(kHere, "mat1 and mat2 shapes cannot be multiplied")) ==
        "mat1 and mat2 shapes cannot be multiplied");
  CHECK(error_message(c10::Error(kHere,
                                 "Could not run 'aten::nms' with arguments from the 'CUDA' backend. This could be "
                                 "because ...\n\nCPU: registered at nms.cpp:1 [kernel]\n")) ==
        "Could not run 'aten::nms' with arguments from the 'CUDA' backend");
}

}  // namespace
}  // namespace ddprun::train
