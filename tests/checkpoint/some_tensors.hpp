// Helpers that create tensors and read their values.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace ddprun::testing {

// A one-dimensional tensor over `values`, which must outlive it.
template <class T>
checkpoint::TensorView vector_of(const std::string& name, const std::string& dtype, const std::vector<T>& values) {
  return {name, dtype, {static_cast<int64_t>(values.size())}, values.data(), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(const checkpoint::Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace ddprun::testing
