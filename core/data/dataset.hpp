// data: datasets, the Sampler and the loader. Torch-free: it fills plain memory; train/ makes tensors of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ddprun::data {

enum class ElementType { float32, int64 };

// Bytes of one element.
std::size_t size_of(ElementType type);

// Shape and type of one field of one sample, without the batch dimension. Empty shape: a scalar.
struct Field {
  std::vector<int64_t> shape;
  ElementType type = ElementType::float32;
  std::size_t elements() const;
  std::size_t bytes() const { return elements() * size_of(type); }
};

// Samples that can be fetched by index. All functions are const and may be called from many threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual const Field& input() const = 0;                       // e.g. {1, 28, 28} float32
  virtual const Field& target() const = 0;                      // e.g. {} int64 (a class), or {1} float32
  virtual const std::vector<std::string>& classes() const = 0;  // names; empty for regression
  // Writes the samples of `indices` one after another: inputs has indices.size() * input().bytes() bytes, targets
  // likewise; the memory is the caller's. Throws Error(usage) that names file and offset when a sample cannot be read,
  // Error(failure) for an index outside the data set.
  virtual void fetch(std::span<const int64_t> indices, void* inputs, void* targets) const = 0;
};

// The two splits of one named data set.
struct Splits {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
};

// Throws Error(failure) for an index that is not in [0, size). For implementations of Dataset::fetch.
void check_indices(std::span<const int64_t> indices, int64_t size);

}  // namespace ddprun::data
