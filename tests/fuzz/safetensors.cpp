// A checkpoint: its header, its offsets, and the bytes of its tensors.
#include "fuzz/target.hpp"

#include <algorithm>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "ddprun/error.hpp"

using namespace ddprun;
using namespace ddprun::checkpoint;

namespace {

class Bytes final : public ByteSource {
 public:
  explicit Bytes(std::string_view bytes) : size_(bytes.size()), rest_(bytes) {}
  uint64_t size() const override { return size_; }
  void read(void* out, uint64_t bytes) override {
    fuzz::require(bytes <= rest_.size(), "no more is read than there is");
    std::ranges::copy(rest_.substr(0, bytes), static_cast<char*>(out));
    rest_.remove_prefix(bytes);
  }

 private:
  const uint64_t size_;
  std::string_view rest_;
};

bool equal(const File& a, const File& b) {
  const auto same = [&](const Tensor& tensor) {
    const Tensor& other = b.at(tensor.name);
    return tensor.dtype == other.dtype && tensor.shape == other.shape && tensor.data == other.data;
  };
  return a.metadata == b.metadata && a.tensors.size() == b.tensors.size() && std::ranges::all_of(a.tensors, same);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const std::string path = "file";
  static fuzz::MemoryFile copy;
  File file;
  try {
    Bytes source({reinterpret_cast<const char*>(data), size});
    file = read_safetensors(source, path, false);
  } catch (const Error& error) {
    fuzz::require(error.code() == ExitCode::usage, "a damaged checkpoint is a user's error", error.what());
    fuzz::require_message(error.what(), path + ": ");
    return 0;
  }
  std::vector<TensorView> views;
  for (const Tensor& tensor : file.tensors) {
    views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.data.data(), tensor.data.size()});
  }
  write_safetensors(copy.path(), views, file.metadata);
  fuzz::require(equal(file, read_safetensors(copy.path())), "what is read can be written, and is read back");
  return 0;
}
