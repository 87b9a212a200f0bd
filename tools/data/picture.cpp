#include "tools/data/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace ddprun::info {
namespace {

constexpr int kMostColumns = 64;
constexpr int kMostLines = 32;
constexpr std::string_view kShades = " .:-=+*#%@";

struct Rgb {
  int red = 0, green = 0, blue = 0;
};

struct Size {
  std::size_t height = 0, width = 0;
};

Size size_of(const std::vector<int64_t>& shape) {
  return {static_cast<std::size_t>(shape[shape.size() - 2]), static_cast<std::size_t>(shape.back())};
}

uint8_t pixel_of(double value, ShownRange range) {
  if (std::isnan(value) || value <= range.low) return 0;
  if (value >= range.high) return 255;
  return static_cast<uint8_t>(std::lround(255 * (value - range.low) / (range.high - range.low)));
}

// Where a side of `from` pixels becomes one of `to`: how much of an old pixel a new one covers, in parts of which an
// old one has `to`. They are integers and add up to `from`, so averages are exact.
uint64_t covered(std::size_t made, std::size_t old, std::size_t from, std::size_t to) {
  return std::min((made + 1) * from, (old + 1) * to) - std::max(made * from, old * to);
}

// A pixel of the picture scaled to this size: the average of what it covers.
uint8_t average(const Picture& picture, Size to, std::size_t y, std::size_t x, std::size_t channel) {
  const std::size_t height = picture.height, width = picture.width;
  uint64_t sum = 0;
  for (std::size_t old_y = y * height / to.height; old_y * to.height < (y + 1) * height; ++old_y) {
    uint64_t row = 0;
    for (std::size_t old_x = x * width / to.width; old_x * to.width < (x + 1) * width; ++old_x) {
      row += covered(x, old_x, width, to.width) * picture.pixels[(old_y * width + old_x) * picture.channels + channel];
    }
    sum += covered(y, old_y, height, to.height) * row;
  }
  return static_cast<uint8_t>((sum + height * width / 2) / (height * width));
}

Picture resized(const Picture& picture, Size to) {
  Picture made{to.height, to.width, picture.channels, {}};
  for (std::size_t y = 0; y < to.height; ++y) {
    for (std::size_t x = 0; x < to.width; ++x) {
      for (std::size_t channel = 0; channel < picture.channels; ++channel)
        made.pixels.push_back(average(picture, to, y, x, channel));
    }
  }
  return made;
}

// The image's size on a grid of squares, one column wide and half a line high, with at most `most` squares per pixel.
Size fitted(const Picture& picture, int columns, double most) {
  const auto height = static_cast<double>(picture.height), width = static_cast<double>(picture.width);
  const double scale = std::min({most, columns / width, 2 * kMostLines / height});
  const auto side = [&](double pixels) { return static_cast<std::size_t>(std::max(1L, std::lround(pixels * scale))); };
  return {side(height), side(width)};
}

Rgb colour_at(const Picture& picture, std::size_t y, std::size_t x) {
  const uint8_t* pixel = &picture.pixels[(y * picture.width + x) * picture.channels];
  return picture.channels == 1 ? Rgb{pixel[0], pixel[0], pixel[0]} : Rgb{pixel[0], pixel[1], pixel[2]};
}

int distance(Rgb a, Rgb b) {
  const int red = a.red - b.red, green = a.green - b.green, blue = a.blue - b.blue;
  return red * red + green * green + blue * blue;
}

// The nearest colour of xterm's 6 x 6 x 6 cube and its 24 greys.
int cube256(Rgb colour) {
  constexpr std::array<int, 6> levels = {0, 95, 135, 175, 215, 255};
  const auto nearest = [&](int value) {
    const auto distance_to = [&](int level) { return std::abs(level - value); };
    return static_cast<int>(std::ranges::min_element(levels, {}, distance_to) - levels.begin());
  };
  const auto level = [&](int index) { return levels[static_cast<std::size_t>(index)]; };
  const int red = nearest(colour.red), green = nearest(colour.green), blue = nearest(colour.blue);
  const int grey = std::clamp(((colour.red + colour.green + colour.blue) / 3 - 3) / 10, 0, 23);
  const int shade = 8 + 10 * grey;
  const bool greyer =
      distance(colour, {shade, shade, shade}) < distance(colour, {level(red), level(green), level(blue)});
  return greyer ? 232 + grey : 16 + 36 * red + 6 * green + blue;
}

// The escape code that selects a colour (ISO 8613-6) for the foreground, "38", or the background, "48".
std::string select(std::string_view ground, Rgb colour, console::Colours colours) {
  if (colours == console::Colours::cube256) return fmt::format("{};5;{}", ground, cube256(colour));
  return fmt::format("{};2;{};{};{}", ground, colour.red, colour.green, colour.blue);
}

std::string draw_blocks(const Picture& picture, console::Colours colours) {
  std::string text;
  for (std::size_t y = 0; y < picture.height; y += 2) {
    std::string current;
    for (std::size_t x = 0; x < picture.width; ++x) {
      std::string wanted = select("38", colour_at(picture, y, x), colours);
      if (y + 1 < picture.height) wanted += ';' + select("48", colour_at(picture, y + 1, x), colours);
      if (wanted != current) text += "\x1b[" + wanted + 'm';
      text += "\u2580";
      current = std::move(wanted);
    }
    text += "\x1b[0m\n";
  }
  return text;
}

char shade_of(Rgb colour) {
  const int light = (299 * colour.red + 587 * colour.green + 114 * colour.blue) / 1000;
  return kShades[static_cast<std::size_t>(light) * kShades.size() / 256];
}

std::string draw_shades(const Picture& picture) {
  std::string text;
  for (std::size_t y = 0; y < picture.height; ++y) {
    std::string line;
    for (std::size_t x = 0; x < picture.width; ++x) line += shade_of(colour_at(picture, y, x));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace

bool is_picture(const std::vector<int64_t>& shape) {
  return shape.size() == 2 || (shape.size() == 3 && (shape[0] == 1 || shape[0] == 3));
}

ShownRange shown_range(std::span<const double> values) {
  ShownRange seen{INFINITY, -INFINITY};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    seen = {std::min(seen.low, value), std::max(seen.high, value)};
  }
  if (seen.low >= 0 && seen.high <= 1) return {0, 1};
  if (seen.low >= -1 && seen.high <= 1) return {-1, 1};
  return seen;
}

std::string range_text(ShownRange range) {
  return fmt::format("black is {:.5g}, white {:.5g}", range.low, range.high);
}

Picture make_picture(const std::vector<int64_t>& shape, std::span<const double> values, ShownRange range) {
  if (!is_picture(shape)) throw std::logic_error("a sample of this shape is no picture");
  const auto [height, width] = size_of(shape);
  const std::size_t plane = height * width;
  Picture picture{height, width, shape.size() == 3 ? static_cast<std::size_t>(shape[0]) : 1, {}};
  if (values.size() != picture.channels * plane) throw std::logic_error("a sample has other values than its shape");
  picture.pixels.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    picture.pixels[i % plane * picture.channels + i / plane] = pixel_of(values[i], range);
  }
  return picture;
}

std::string draw(const Picture& picture, const console::Terminal& terminal) {
  const int columns = terminal.columns > 0 ? std::min(terminal.columns, kMostColumns) : kMostColumns;
  if (terminal.colours != console::Colours::none) {
    return draw_blocks(resized(picture, fitted(picture, columns, 1)), terminal.colours);
  }
  const auto [height, width] = fitted(picture, columns, 2);
  return draw_shades(resized(picture, {std::max<std::size_t>(1, height / 2), width}));
}

}  // namespace ddprun::info
