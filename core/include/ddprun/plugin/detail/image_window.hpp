// ddprun/plugin/detail/image_window.hpp: copies a shifted and mirrored window of a plane.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace ddprun::detail {

// A window as large as the plane itself, moved down and to the right by so much, then mirrored left to right or not.
struct Window {
  int64_t down = 0, right = 0;
  bool mirrored = false;
};

// Writes table[value] for each value in the window, and table[0] where it reaches beyond the plane. plane and out:
// [rows, columns].
inline void take_window(const uint8_t* plane, int64_t rows, int64_t columns, const Window& window,
                        const std::array<float, 256>& table, float* out) {
  const auto convert = [&](uint8_t value) { return table[value]; };
  if (window.down == 0 && window.right == 0 && !window.mirrored) {
    std::transform(plane, plane + rows * columns, out, convert);
    return;
  }
  // The columns [begin, end) of the window lie in the plane.
  const int64_t begin = std::clamp<int64_t>(-window.right, 0, columns);
  const int64_t end = std::clamp<int64_t>(columns - window.right, begin, columns);
  for (int64_t row = window.down; row < rows + window.down; ++row, out += columns) {
    if (row < 0 || row >= rows || begin == end) {
      std::fill_n(out, columns, table[0]);
      continue;
    }
    const uint8_t* const source = plane + row * columns + (begin + window.right);
    std::fill_n(out, begin, table[0]);
    std::transform(source, source + (end - begin), out + begin, convert);
    std::fill(out + end, out + columns, table[0]);
    if (window.mirrored) std::reverse(out, out + columns);
  }
}

}  // namespace ddprun::detail
