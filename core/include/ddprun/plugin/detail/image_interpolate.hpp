// ddprun/plugin/detail/image_interpolate.hpp: resizes pictures as torch.nn.functional.interpolate(mode="bilinear",
// align_corners=False, antialias=False) does it to a float32 tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddprun::detail {

// v / 255 in float32, as torchvision's ToTensor gives it.
inline const std::array<float, 256>& unit_table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 255.0f;
    return values;
  }();
  return table;
}

// The two neighbours of each value along one axis of the resized picture, with their weights.
class LinearWeights {
 public:
  struct Pair {
    int64_t first, second;
    float first_weight, second_weight;
  };
  const Pair& operator[](int64_t target) const { return pairs_[static_cast<std::size_t>(target)]; }

  // Computes them anew only for other sizes than the last ones.
  void prepare(int64_t source_size, int64_t target_size) {
    if (source_size == source_size_ && target_size == target_size_) return;
    target_size_ = 0;  // none is prepared, should an allocation throw
    pairs_.clear();
    // In float32 and rounded once, as PyTorch computes it: the rounding of a place far from 0 is seen in the weights.
    const float scale = static_cast<float>(source_size) / static_cast<float>(target_size);
    for (int64_t target = 0; target < target_size; ++target) {
      const float place = std::max(std::fma(scale, static_cast<float>(target) + 0.5f, -0.5f), 0.0f);
      const int64_t first = std::min(static_cast<int64_t>(place), source_size - 1);
      const float rest = std::clamp(place - static_cast<float>(first), 0.0f, 1.0f);
      pairs_.push_back({first, std::min(first + 1, source_size - 1), 1.0f - rest, rest});
    }
    source_size_ = source_size;
    target_size_ = target_size;
  }

 private:
  int64_t source_size_ = 0;
  int64_t target_size_ = 0;
  std::vector<Pair> pairs_;
};

// Keeps its memory and weights for the next picture of the same size. One thread at a time.
class FloatResizer {
 public:
  // pixels: [channels, height, width]; returns [channels, rows, columns] in [0, 1], valid until the next call.
  const float* resize(const uint8_t* pixels, int64_t channels, int64_t height, int64_t width, int64_t rows,
                      int64_t columns) {
    across_.prepare(width, columns);
    down_.prepare(height, rows);
    stretched_.resize(static_cast<std::size_t>(height * columns));
    resized_.resize(static_cast<std::size_t>(channels * rows * columns));
    float* out = resized_.data();
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t row = 0; row < height; ++row, pixels += width) {
        stretch_row(pixels, columns, stretched_.data() + row * columns);
      }
      for (int64_t row = 0; row < rows; ++row, out += columns) blend_rows(down_[row], columns, out);
    }
    return resized_.data();
  }

 private:
  void stretch_row(const uint8_t* source, int64_t columns, float* out) const {
    const auto& unit = unit_table();
    for (int64_t column = 0; column < columns; ++column) {
      const auto& [first, second, first_weight, second_weight] = across_[column];
      out[column] = unit[source[first]] * first_weight + unit[source[second]] * second_weight;
    }
  }

  void blend_rows(const LinearWeights::Pair& pair, int64_t columns, float* out) const {
    const float* const first = stretched_.data() + pair.first * columns;
    const float* const second = stretched_.data() + pair.second * columns;
    const float first_weight = pair.first_weight, second_weight = pair.second_weight;
    for (int64_t column = 0; column < columns; ++column) {
      out[column] = first[column] * first_weight + second[column] * second_weight;
    }
  }

  LinearWeights across_, down_;
  std::vector<float> stretched_, resized_;
};

}  // namespace ddprun::detail
