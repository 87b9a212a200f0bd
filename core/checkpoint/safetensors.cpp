#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/file.hpp"
#include "checkpoint/internal.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

using Dtype = std::pair<std::string_view, size_t>;  // with the bytes of an element
constexpr Dtype kDtypes[] = {{"F64", 8}, {"I64", 8}, {"U64", 8},     {"F32", 4},     {"I32", 4},
                             {"U32", 4}, {"F16", 2}, {"BF16", 2},    {"I16", 2},     {"U16", 2},
                             {"I8", 1},  {"U8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};

void check(const std::vector<TensorView>& tensors) {
  std::set<std::string> names;
  for (const TensorView& tensor : tensors) {
    size_t bytes = element_size(tensor.dtype);
    for (const int64_t extent : tensor.shape) bytes *= static_cast<size_t>(extent);
    const char* fault = nullptr;
    if (element_size(tensor.dtype) == 0) fault = "has an unknown dtype";
    if (bytes != tensor.bytes) fault = "has not the bytes of its shape and dtype";
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) fault = "has a name that is taken";
    if (fault != nullptr) throw std::logic_error("tensor \"" + tensor.name + "\" " + fault);
  }
}

// Widest elements first: then every tensor is aligned to its element's size, as programs that map the file expect.
std::vector<TensorView> by_alignment(std::vector<TensorView> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return element_size(a.dtype) > element_size(b.dtype);
  });
  return tensors;
}

std::string make_header(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  Json& words = header["__metadata__"] = metadata;
  for (const TensorView& tensor : tensors) {
    words[kTensorChecksumPrefix + tensor.name] = checksum_of(tensor.data, tensor.bytes);
  }
  words[kHeaderChecksumKey] = kNoChecksum;

  size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  seal(text);
  return text;
}

}  // namespace

size_t element_size(const std::string& dtype) {
  const auto* const found = std::ranges::find(kDtypes, dtype, &Dtype::first);
  return found == std::end(kDtypes) ? 0 : found->second;
}

std::string quoted_name(const std::string& name) {
  return printable(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace));
}

const Tensor* File::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

const Tensor& File::at(const std::string& name) const {
  if (const Tensor* const tensor = find(name)) return *tensor;
  throw Error(ExitCode::usage, path + ": has no tensor \"" + name + "\"");
}

void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata) {
  check(tensors);
  const std::vector<TensorView> ordered = by_alignment(tensors);
  const std::string header = make_header(ordered, metadata);
  const uint64_t length = header.size();

  OutputFile file(path);
  file.write(&length, sizeof length);
  file.write(header);
  for (const TensorView& tensor : ordered) file.write(tensor.data, tensor.bytes);
  file.sync();
  file.close();
}

}  // namespace ddprun::checkpoint
