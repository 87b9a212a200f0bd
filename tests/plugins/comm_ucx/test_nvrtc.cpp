// The kernel compiled by the real NVRTC, which needs no GPU.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"
#include "plugins/comm_ucx/gpu.hpp"

using ddprun::CommStatus;

using namespace ddprun;
using ucx_backend::compiled_kernel;

TEST_CASE("NVRTC compiles the kernel for eight years of GPUs") {
  if (access(DDPRUN_NVRTC, R_OK) != 0) {
    std::printf("skipped: there is no NVRTC at %s\n", DDPRUN_NVRTC);
    std::fflush(stdout);
    std::_Exit(77);
  }
  for (const std::string architecture : {"sm_75", "sm_80", "sm_90", "sm_100"}) {
    CAPTURE(architecture);
    const std::string& image = compiled_kernel(architecture);
    CHECK(
        image.starts_with("\x7f"
                          "ELF"));
    CHECK(image.find(ucx_backend::kKernel) != std::string::npos);
    CHECK(&compiled_kernel(architecture) == &image);
  }
  try {
    compiled_kernel("sm_1");
    FAIL("sm_1 was compiled");
  } catch (const CommError& failure) {
    CHECK(failure.status() == CommStatus::unsupported);
    CHECK_MESSAGE(std::string(failure.what()).starts_with("NVRTC cannot compile for sm_1: "), failure.what());
  }
}
