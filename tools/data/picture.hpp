// A sample as an image: converts values to pixels, and pixels to text for a terminal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/console/progress_bar.hpp"

namespace ddprun::info {

// 8 bits per value, pixel after pixel, row after row: [height, width, channels].
struct Picture {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 1;  // 1: grey; 3: red, green, blue
  std::vector<uint8_t> pixels;
};

// The values that are drawn as 0 and as 255.
struct ShownRange {
  double low = 0;
  double high = 1;
};

// Whether a sample of this shape can be drawn: {height, width}, {1, height, width} or {3, height, width}.
bool is_picture(const std::vector<int64_t>& shape);

// [0, 1] or [-1, 1] if all finite values lie within, else from the smallest to the largest.
ShownRange shown_range(std::span<const double> values);

// "black is 0, white 1".
std::string range_text(ShownRange range);

// The values of a sample, [channels, height, width], as pixels. Values outside the range are clipped; NaN becomes 0.
// Throws std::logic_error if the shape is not an image's, or the number of values does not match it.
Picture make_picture(const std::vector<int64_t>& shape, std::span<const double> values, ShownRange range);

// At most 64 columns, or the terminal's if it has fewer (0: 64), and 32 lines, each ending in a newline. A larger image
// is scaled down; each pixel is the average of its area. With colours: upper half blocks, two pixels per character.
// Without: ten shades of ASCII for a dark terminal, colours weighted as in Rec. 601; two characters per pixel if there
// is room, since a character is about twice as high as it is wide.
std::string draw(const Picture& picture, const console::Terminal& terminal);

}  // namespace ddprun::info
