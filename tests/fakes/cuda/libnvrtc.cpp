// A fake libnvrtc.so.13 that compiles nothing: it accepts only the text of plugins/comm_ucx/kernel.cu, whose CPU code
// the fake libcuda.so.1 contains.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct Program {
  bool is_known = false;
  std::string image;
};

constexpr int kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6;
constexpr char kLog[] = "kernel.cu(1): error: this is not what the fake driver runs\n1 error detected\n";

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

extern "C" {

int nvrtcCreateProgram(Program** program, const char* text, const char*, int headers, const char* const*,
                       const char* const* names) {
  const std::vector<std::string> given(names, names + headers);
  for (const char* needed : {"ddprun/plugin/comm_plugin.h", "reduction/float16.hpp"}) {
    if (std::find(given.begin(), given.end(), needed) == given.end()) return kInvalidInput;
  }
  *program = new Program{text_of(DDPRUN_KERNEL) == text, ""};
  return 0;
}

// DDPRUN_FAKE_NVRTC_FAILS: compilation fails.
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  constexpr char kTarget[] = "--gpu-architecture=";
  const std::vector<std::string> given(options, options + count);
  const auto target =
      std::find_if(given.begin(), given.end(), [&](const std::string& one) { return one.starts_with(kTarget); });
  if (target == given.end() || std::find(given.begin(), given.end(), "--fmad=false") == given.end()) {
    return kInvalidOption;
  }
  if (!program->is_known || std::getenv("DDPRUN_FAKE_NVRTC_FAILS") != nullptr) return kCompilation;
  program->image = "kernel.cu for " + target->substr(std::strlen(kTarget));
  return 0;
}

int nvrtcGetProgramLogSize(Program*, std::size_t* size) {
  *size = sizeof kLog;
  return 0;
}
int nvrtcGetProgramLog(Program*, char* log) {
  std::strcpy(log, kLog);
  return 0;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  *size = program->image.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* image) {
  std::strcpy(image, program->image.c_str());
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
const char* nvrtcGetErrorString(int result) {
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
}
