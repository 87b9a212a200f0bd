// A sample as a picture: its values to pixels, and pixels to text that a terminal shows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "console/terminal.hpp"

namespace ddprun::info {

// 8 bits a value, pixel after pixel, row after row: [height, width, channels].
struct Picture {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 1;  // 1: grey; 3: red, green, blue
  std::vector<uint8_t> pixels;
};

// The values that are shown as 0 and as 255.
struct ShownRange {
  double low = 0;
  double high = 1;
};

// Whether a sample of this shape can be drawn: {height, width}, {1, height, width} or {3, height, width}.
bool is_picture(const std::vector<int64_t>& shape);

// [0, 1] or [-1, 1] where all finite values lie within, else from the smallest to the largest.
ShownRange shown_range(std::span<const double> values);

// "black is 0, white 1".
std::string range_text(ShownRange range);

// The values of a sample, [channels, height, width], as pixels. What is beyond the range is drawn as its end, NaN as 0.
// Throws std::logic_error unless the shape is a picture's and the values are as many as it says.
Picture make_picture(const std::vector<int64_t>& shape, std::span<const double> values, ShownRange range);

// Every pixel as a square of `factor` by `factor`.
Picture enlarged(const Picture& picture, std::size_t factor);

// At most 64 columns, or the terminal's where they are fewer (0: 64), and 32 lines, each ending in a newline; a larger
// picture is scaled down, each pixel the average of the area it stands for. With colours: upper half blocks, two pixels
// a character. Without: ten shades of ASCII for a dark terminal, red, green and blue weighted as in Rec. 601; two
// characters a pixel where there is room, since a character is about twice as high as it is wide.
std::string draw(const Picture& picture, const console::Terminal& terminal);

}  // namespace ddprun::info
