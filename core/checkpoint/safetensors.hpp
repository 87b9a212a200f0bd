// checkpoint: tensors on disk: the safetensors format with checksums, and folders whose newest file is always whole.
// Torch-free: a tensor here is a name, a dtype, a shape and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ddprun::checkpoint {

// The format: an 8-byte little-endian length N, N bytes of JSON that map each name to {"dtype", "shape",
// "data_offsets"} (and "__metadata__" to strings), then the tensors' bytes without gaps, little-endian, row-major.
// https://github.com/huggingface/safetensors describes it. Ours adds a CRC-32 (zlib's) of each tensor to the metadata,
// under "ddprun.crc32.<name>", and one of all else in the header under "ddprun.crc32"; other readers ignore them.

using Metadata = std::map<std::string, std::string>;

// A tensor to be written; the caller keeps the bytes alive during the call.
struct TensorView {
  std::string name;            // "fc1.weight"; unique, not "__metadata__"
  std::string dtype;           // "F32", "BF16", "I64", "U8", "BOOL", ...; element_size() knows them
  std::vector<int64_t> shape;  // {} for a scalar
  const void* data = nullptr;  // contiguous, row-major
  size_t bytes = 0;            // product of shape times the dtype's size
};

// Bytes of one element; 0 for a dtype that is not known.
size_t element_size(const std::string& dtype);

// Tensors that were read; they own their bytes.
struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};
struct File {
  std::vector<Tensor> tensors;  // in the order of their bytes in the file
  Metadata metadata;            // without the checksums

  // Throws Error(usage) naming the file where there is no such tensor.
  const Tensor& at(const std::string& name) const;
  std::string path;
};

// A name that comes from a file, quoted and escaped for a message.
std::string quoted_name(const std::string& name);

// Writes the file at `path` (created or emptied), makes it durable (fsync), and closes it. Not atomic: CheckpointFolder
// is. Throws Error(failure) with path, the bytes that were to be written, and errno; a tensor that contradicts itself
// (bytes, dtype, name) is a std::logic_error and nothing is written.
void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata);

// Reads and checks all of it. Trusts nothing in the file: the header is at most 100 MB and never longer than the file,
// products and sums are checked for overflow, offsets must be contiguous, without gap or overlap, and end where the
// file does, and every checksum must match. A file without our checksums (from Python) is accepted unless
// require_checksums. Throws Error(usage) that names the file and, where one is to blame, the tensor; Error(failure)
// when reading itself fails.
File read_safetensors(const std::string& path, bool require_checksums = true);

}  // namespace ddprun::checkpoint
