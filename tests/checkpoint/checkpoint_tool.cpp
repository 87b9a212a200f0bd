// For safetensors_parity.py: `write PATH` writes a checkpoint with every dtype, for Python to read; `show PATH` prints
// what ddprun's reader reads, as JSON.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

using namespace ddprun::checkpoint;

namespace {

// Tensors of shape [2, 3] whose bytes count up from 0, for every dtype; a scalar; an empty one.
void write(const std::string& path) {
  std::vector<uint8_t> bytes(2 * 3 * 8);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  std::vector<TensorView> tensors;
  for (const char* dtype : {"U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64"}) {
    tensors.push_back({std::string("tensor.") + dtype, dtype, {2, 3}, bytes.data(), 6 * element_size(dtype)});
  }
  tensors.push_back({"scalar", "F32", {}, bytes.data(), 4});
  tensors.push_back({"empty", "F32", {0, 4}, nullptr, 0});
  write_safetensors(path, tensors, {{"step", "469"}, {"epoch", "1"}});
}

void show(const std::string& path) {
  const File file = read_safetensors(path, false);
  nlohmann::json shown = {{"metadata", file.metadata}, {"tensors", nlohmann::json::object()}};
  for (const Tensor& tensor : file.tensors) {
    std::vector<int> bytes;
    for (const std::byte byte : tensor.data) bytes.push_back(std::to_integer<int>(byte));
    shown["tensors"][tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"bytes", bytes}};
  }
  std::puts(shown.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  try {
    if (verb == "write") {
      write(argv[2]);
    } else if (verb == "show") {
      show(argv[2]);
    } else {
      std::fputs("usage: checkpoint_tool write|show PATH\n", stderr);
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
