// A data set with values from a test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::testing {

// Inputs of type Input, targets of type Target: float or int64_t.
template <class Input, class Target>
class MemoryDataset : public Dataset {
 public:
  MemoryDataset(std::vector<int64_t> input_shape, std::vector<Input> inputs, std::vector<int64_t> target_shape,
                std::vector<Target> targets, std::vector<std::string> classes = {})
      : input_{std::move(input_shape), type_of<Input>()},
        target_{std::move(target_shape), type_of<Target>()},
        inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        classes_(std::move(classes)) {}

  int64_t size() const override { return static_cast<int64_t>(inputs_.size() / input_.elements()); }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    check_indices(indices, size());
    auto* input = static_cast<Input*>(inputs);
    auto* target = static_cast<Target*>(targets);
    for (const int64_t index : indices) {
      input = copy(inputs_, static_cast<std::size_t>(index) * input_.elements(), input_.elements(), input);
      target = copy(targets_, static_cast<std::size_t>(index) * target_.elements(), target_.elements(), target);
    }
  }

 private:
  template <class T>
  static constexpr ElementType type_of() {
    return sizeof(T) == 4 ? ElementType::float32 : ElementType::int64;
  }
  template <class T>
  static T* copy(const std::vector<T>& from, std::size_t first, std::size_t count, T* to) {
    return std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), count, to);
  }

  const Field input_;
  const Field target_;
  const std::vector<Input> inputs_;
  const std::vector<Target> targets_;
  const std::vector<std::string> classes_;
};

}  // namespace ddprun::testing
