// Resizes 8-bit pictures as Pillow's Image.resize(size, Image.BILINEAR) does, bit for bit; torchvision's Resize of a
// PIL image is that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddprun::detail {

// What each value along one axis of the resized picture is made of: `taps` neighbours in the source, and a fixed-point
// weight for each. A triangle as wide as two source pixels, or as two target pixels where the picture shrinks.
class TriangleWeights {
 public:
  static constexpr int fraction_bits = 22;  // 32 bits less 8 of the pixel and 2 to spare

  int64_t taps() const { return taps_; }
  int64_t first(int64_t target) const { return first_[static_cast<std::size_t>(target)]; }
  const int32_t* weights(int64_t target) const { return weights_.data() + target * taps_; }

  // Computes them anew only for other sizes than the last ones.
  void prepare(int64_t source_size, int64_t target_size) {
    if (source_size == source_size_ && target_size == target_size_) return;
    target_size_ = 0;  // none is prepared, should an allocation throw
    source_size_ = source_size;
    const double scale = static_cast<double>(source_size) / static_cast<double>(target_size);
    const double reach = std::max(scale, 1.0);
    taps_ = std::min(source_size, 2 * static_cast<int64_t>(std::ceil(reach)) + 1);
    first_.resize(static_cast<std::size_t>(target_size));
    weights_.assign(static_cast<std::size_t>(target_size * taps_), 0);
    for (int64_t target = 0; target < target_size; ++target) {
      weigh(target, (static_cast<double>(target) + 0.5) * scale, reach);
    }
    drop_idle_taps();
    target_size_ = target_size;
  }

 private:
  // The weights of one target pixel, whose middle lies at `middle` in the source, from the first neighbour in reach.
  void weigh(int64_t target, double middle, double reach) {
    const int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(middle - reach + 0.5));
    const int64_t end = std::min(source_size_, static_cast<int64_t>(middle + reach + 0.5));
    shares_.clear();
    double sum = 0;
    for (int64_t source = begin; source < end; ++source) {
      const double distance = std::abs((static_cast<double>(source) - middle + 0.5) * (1.0 / reach));
      shares_.push_back(distance < 1.0 ? 1.0 - distance : 0.0);
      sum += shares_.back();
    }
    // At the lower edge the window may begin too late for all taps; earlier neighbours then weigh nothing.
    const int64_t first = std::min(begin, source_size_ - taps_);
    first_[static_cast<std::size_t>(target)] = first;
    int32_t* weight = weights_.data() + target * taps_ + (begin - first);
    for (const double share : shares_) *weight++ = static_cast<int32_t>(0.5 + share / sum * (1 << fraction_bits));
  }

  // Fewer taps for all, where the outermost weigh nothing: when a picture grows, two are enough.
  void drop_idle_taps() {
    const auto targets = static_cast<int64_t>(first_.size());
    const auto idle = [](int32_t weight) { return weight == 0; };
    int64_t needed = 1;
    for (int64_t target = 0; target < targets; ++target) {
      const int32_t* const own = weights(target);
      const int64_t skipped = std::find_if_not(own, own + taps_, idle) - own;
      int64_t last = taps_;
      while (last > skipped && idle(own[last - 1])) --last;
      needed = std::max(needed, last - skipped);
    }
    if (needed == taps_) return;
    for (int64_t target = 0; target < targets; ++target) {
      const int32_t* const own = weights(target);
      const int64_t skipped = std::min(std::find_if_not(own, own + taps_, idle) - own, taps_ - needed);
      first_[static_cast<std::size_t>(target)] += skipped;
      std::copy_n(own + skipped, needed, weights_.data() + target * needed);  // never ahead of what is still to be read
    }
    taps_ = needed;
  }

  int64_t source_size_ = 0;
  int64_t target_size_ = 0;
  int64_t taps_ = 0;
  std::vector<int64_t> first_;    // [target]: the first neighbour
  std::vector<int32_t> weights_;  // [target, taps]
  std::vector<double> shares_;
};

// Whether Pillow (from version 13; older ones never) resizes columns before rows: where the picture loses far more
// height than width. It shows, since each of the two passes rounds to 8 bits.
inline bool columns_first(int64_t height, int64_t width, int64_t rows, int64_t columns) {
  return rows < height && height - rows > 2 * (width - columns);
}

// Resizes rows, then columns, or the other way round, with a rounding to 8 bits after each. Keeps its memory and
// weights for the next picture of the same size. One thread at a time.
class ByteResizer {
 public:
  // pixels: [channels, height, width]; returns [channels, rows, columns], valid until the next call, or `pixels` itself
  // when that is its size.
  const uint8_t* resize(const uint8_t* pixels, int64_t channels, int64_t height, int64_t width, int64_t rows,
                        int64_t columns) {
    if (columns_first(height, width, rows, columns)) {
      return resize_rows(resize_columns(pixels, channels, height, width, rows), channels * rows, width, columns);
    }
    return resize_columns(resize_rows(pixels, channels * height, width, columns), channels, height, columns, rows);
  }

 private:
  static constexpr int32_t half = 1 << (TriangleWeights::fraction_bits - 1);

  // The weights of very many taps may add up to a little more than one.
  static uint8_t rounded(int32_t sum) {
    return static_cast<uint8_t>(std::min(sum >> TriangleWeights::fraction_bits, 255));
  }

  // [height, width] -> [height, columns]
  const uint8_t* resize_rows(const uint8_t* pixels, int64_t height, int64_t width, int64_t columns) {
    if (width == columns) return pixels;
    across_.prepare(width, columns);
    narrowed_.resize(static_cast<std::size_t>(height * columns));
    uint8_t* out = narrowed_.data();
    for (int64_t row = 0; row < height; ++row, pixels += width) {
      for (int64_t column = 0; column < columns; ++column) *out++ = blend(pixels, column);
    }
    return narrowed_.data();
  }

  uint8_t blend(const uint8_t* row, int64_t column) const {
    const uint8_t* const neighbours = row + across_.first(column);
    const int32_t* const weights = across_.weights(column);
    int32_t sum = half;
    for (int64_t tap = 0; tap < across_.taps(); ++tap) sum += neighbours[tap] * weights[tap];
    return rounded(sum);
  }

  // [channels, height, width] -> [channels, rows, width]
  const uint8_t* resize_columns(const uint8_t* pixels, int64_t channels, int64_t height, int64_t width, int64_t rows) {
    if (height == rows) return pixels;
    down_.prepare(height, rows);
    sums_.resize(static_cast<std::size_t>(width));
    shortened_.resize(static_cast<std::size_t>(channels * rows * width));
    uint8_t* out = shortened_.data();
    for (int64_t channel = 0; channel < channels; ++channel, pixels += height * width) {
      for (int64_t row = 0; row < rows; ++row, out += width) blend_rows(pixels, width, row, out);
    }
    return shortened_.data();
  }

  // A whole row at a time, so that the compiler can use vector instructions.
  void blend_rows(const uint8_t* plane, int64_t width, int64_t row, uint8_t* out) {
    const uint8_t* source = plane + down_.first(row) * width;
    const int32_t* const weights = down_.weights(row);
    int32_t* const sums = sums_.data();
    std::fill_n(sums, width, half);
    for (int64_t tap = 0; tap < down_.taps(); ++tap, source += width) {
      const int32_t weight = weights[tap];
      for (int64_t column = 0; column < width; ++column) sums[column] += source[column] * weight;
    }
    for (int64_t column = 0; column < width; ++column) out[column] = rounded(sums[column]);
  }

  TriangleWeights across_, down_;
  std::vector<uint8_t> narrowed_, shortened_;
  std::vector<int32_t> sums_;
};

}  // namespace ddprun::detail
