// checkpoint: tensors on disk: the safetensors format with checksums, and folders whose newest file is always complete.
// Torch-free: a tensor here is a name, a dtype, a shape and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ddprun::checkpoint {

// The format: an 8-byte little-endian length N, N bytes of JSON that map each name to {"dtype", "shape",
// "data_offsets"} (and "__metadata__" to strings), then the tensors' bytes without gaps, little-endian, row-major. See
// https://github.com/huggingface/safetensors. We add to the metadata a CRC-32 (zlib's) of each tensor under
// "ddprun.crc32.<name>", and one of the rest of the header under "ddprun.crc32". Other readers ignore them.

using Metadata = std::map<std::string, std::string>;

// A tensor to write; the caller keeps the bytes alive during the call.
struct TensorView {
  std::string name;            // "fc1.weight"; unique, not "__metadata__"
  std::string dtype;           // "F32", "BF16", "I64", "U8", "BOOL", ...; element_size() knows them
  std::vector<int64_t> shape;  // {} for a scalar
  const void* data = nullptr;  // contiguous, row-major
  size_t bytes = 0;            // product of shape times the dtype's size
};

// Bytes of one element; 0 for an unknown dtype.
size_t element_size(const std::string& dtype);

// A file's tensors; they own their bytes.
struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};
struct File {
  std::vector<Tensor> tensors;  // in the order of their bytes in the file
  Metadata metadata;            // without the checksums

  // Null if there is no such tensor.
  const Tensor* find(const std::string& name) const;
  // Throws Error(usage) that names the file if there is no such tensor.
  const Tensor& at(const std::string& name) const;
  std::string path;
};

// A name from a file, quoted and escaped for a message.
std::string quoted_name(const std::string& name);

// Writes the file at `path` (created or truncated), syncs it (fsync) and closes it. Not atomic; CheckpointFolder is.
// Throws Error(failure) with path, the number of bytes, and errno. An inconsistent tensor (bytes, dtype, name) is a
// std::logic_error, and nothing is written.
void write_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata);

// The bytes of a file, from front to end. A file on a disk, or one that another rank reads.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // The next bytes. Throws Error(failure) if reading fails.
  virtual void read(void* out, uint64_t bytes) = 0;
};
// Throws Error(usage) if there is no such file, and Error(failure) if it cannot be opened.
std::unique_ptr<ByteSource> open_file(const std::string& path);

// Reads and checks the whole file. Trusts nothing in it: the header is at most 100 MB and never longer than the file,
// products and sums are checked for overflow, offsets must be contiguous without gap or overlap and end at the end of
// the file, and every checksum must match. A file without our checksums (from Python) is accepted unless
// require_checksums is set. Throws Error(usage) that names the file and, if possible, the tensor; Error(failure) if
// reading itself fails.
File read_safetensors(const std::string& path, bool require_checksums = true);
// The same for bytes from `source`; `path` is the name of the file.
File read_safetensors(ByteSource& source, const std::string& path, bool require_checksums);

}  // namespace ddprun::checkpoint
