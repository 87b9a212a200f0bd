#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/text.hpp"
#include "tools/data/picture.hpp"

using namespace ddprun;
using namespace ddprun::info;
using ddprun::testing::lines_of;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const std::string kHalf = "\xe2\x96\x80";  // U+2580

Picture grey(std::size_t height, std::size_t width, std::vector<uint8_t> pixels) {
  return {height, width, 1, std::move(pixels)};
}

Picture filled(std::size_t height, std::size_t width, uint8_t value) {
  return grey(height, width, std::vector<uint8_t>(height * width, value));
}

// The characters of a line without colour codes.
std::size_t blocks_of(const std::string& line) {
  std::size_t count = 0;
  for (std::size_t at = line.find(kHalf); at != std::string::npos; at = line.find(kHalf, at + 1)) ++count;
  return count;
}

constexpr console::Terminal kRgb{80, console::Colours::rgb};

}  // namespace

TEST_CASE("images have two dimensions, or a first one of 1 or 3") {
  CHECK(is_picture({28, 28}));
  CHECK(is_picture({1, 28, 28}));
  CHECK(is_picture({3, 2, 5}));
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {4}, {2, 5, 5}, {4, 5, 5}, {1, 3, 5, 5}}) {
    CHECK_FALSE(is_picture(shape));
    CHECK_THROWS_AS(make_picture(shape, {}, {}), std::logic_error);
  }
  CHECK_THROWS_AS(make_picture({2, 2}, std::vector<double>{1, 2, 3}, {}), std::logic_error);
}

TEST_CASE("the range is [0, 1] or [-1, 1] if the values lie within, else that of the values") {
  const auto check = [](const std::vector<double>& values, double low, double high) {
    const ShownRange range = shown_range(values);
    CHECK(range.low == low);
    CHECK(range.high == high);
  };
  check({0.2, 0.7}, 0, 1);
  check({0, 1}, 0, 1);
  check({-0.1, 0.5}, -1, 1);
  check({-0.1, 1.5}, -0.1, 1.5);
  check({3, 3}, 3, 3);
  check({kNan, 0.5, kInf, -kInf}, 0, 1);
  check({kNan, -kInf}, 0, 1);
  check({}, 0, 1);
}

TEST_CASE("values become pixels, planes become colours, NaN is 0, other values are clipped") {
  const std::vector<double> planes = {0, 1, 0.5, 0.25, 1, 0};  // red 0 1, green 0.5 0.25, blue 1 0
  const Picture colours = make_picture({3, 1, 2}, planes, {0, 1});
  CHECK(colours.channels == 3);
  CHECK(colours.pixels == std::vector<uint8_t>{0, 128, 255, 255, 64, 0});
  const std::vector<double> odd = {kNan, kInf, -kInf, -7, 7, 0};
  CHECK(make_picture({1, 2, 3}, odd, {-1, 1}).pixels == std::vector<uint8_t>{0, 255, 0, 0, 255, 128});
  CHECK(make_picture({1, 2}, std::vector<double>{5, 5}, {5, 5}).pixels == std::vector<uint8_t>{0, 0});
  CHECK(make_picture({1, 2}, std::vector<double>{-3e38, 3e38}, {-3e38, 3e38}).pixels == std::vector<uint8_t>{0, 255});
}

TEST_CASE("with 24 bits a character is two pixels, the upper its foreground, the lower its background") {
  const Picture picture{2, 2, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3}};
  CHECK(draw(picture, kRgb) ==
        "\x1b[38;2;255;0;0;48;2;0;0;255m" + kHalf + "\x1b[38;2;0;255;0;48;2;1;2;3m" + kHalf + "\x1b[0m\n");
}

TEST_CASE("the last of an odd number of rows has no background, and an unchanged colour is selected once") {
  CHECK(draw(grey(3, 2, {9, 9, 7, 7, 5, 5}), kRgb) ==
        "\x1b[38;2;9;9;9;48;2;7;7;7m" + kHalf + kHalf + "\x1b[0m\n\x1b[38;2;5;5;5m" + kHalf + kHalf + "\x1b[0m\n");
}

TEST_CASE("with 256 colours the nearest of cube and greys is used") {
  const auto code = [](uint8_t red, uint8_t green, uint8_t blue) {
    const std::string text = draw({1, 1, 3, {red, green, blue}}, {80, console::Colours::cube256});
    return text.substr(0, text.find('m'));
  };
  CHECK(code(0, 0, 0) == "\x1b[38;5;16");
  CHECK(code(255, 255, 255) == "\x1b[38;5;231");
  CHECK(code(255, 0, 0) == "\x1b[38;5;196");
  CHECK(code(95, 135, 215) == "\x1b[38;5;68");
  CHECK(code(8, 8, 8) == "\x1b[38;5;232");
  CHECK(code(120, 120, 120) == "\x1b[38;5;243");  // 118; the cube has 135
  CHECK(code(238, 238, 238) == "\x1b[38;5;255");
}

TEST_CASE("without colours: ten shades, two characters per pixel, no spaces at the end") {
  CHECK(draw(grey(2, 5, {0, 26, 52, 77, 103, 128, 154, 180, 205, 255}), {}) == "  ..::--==\n++**##%%@@\n");
  CHECK(draw(grey(1, 3, {0, 255, 0}), {}) == "  @@\n");
  CHECK(draw(filled(2, 2, 0), {}) == "\n\n");
}

TEST_CASE("shades weigh green most and blue least") {
  CHECK(draw({1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}}, {}) == "::++..\n");
}

TEST_CASE("an image is as wide as 64 columns, the terminal and 32 lines allow") {
  const auto shades = [](std::size_t height, std::size_t width, int columns) {
    const auto lines = lines_of(draw(filled(height, width, 255), {columns, console::Colours::none}));
    return std::pair(lines.size(), lines[0].size());
  };
  using Extent = std::pair<std::size_t, std::size_t>;  // lines, columns
  CHECK(shades(28, 28, 0) == Extent{28, 56});
  CHECK(shades(28, 28, 200) == Extent{28, 56});
  CHECK(shades(28, 28, 40) == Extent{20, 40});
  CHECK(shades(32, 32, 80) == Extent{32, 64});
  CHECK(shades(224, 224, 80) == Extent{32, 64});
  CHECK(shades(100, 400, 80) == Extent{8, 64});
  CHECK(shades(400, 100, 80) == Extent{32, 16});
  CHECK(shades(1000, 1, 80) == Extent{32, 1});
  CHECK(shades(1, 1000, 80) == Extent{1, 64});
  CHECK(shades(28, 28, 1) == Extent{1, 1});

  const auto blocks = [](std::size_t height, std::size_t width, int columns) {
    const auto lines = lines_of(draw(filled(height, width, 255), {columns, console::Colours::rgb}));
    return std::pair(lines.size(), blocks_of(lines[0]));
  };
  CHECK(blocks(28, 28, 80) == Extent{14, 28});
  CHECK(blocks(28, 28, 10) == Extent{5, 10});
  CHECK(blocks(224, 224, 0) == Extent{32, 64});
  CHECK(blocks(5, 5, 80) == Extent{3, 5});
}

TEST_CASE("scaled down, a pixel is the average of its area, also if areas split pixels") {
  // 3 columns on 2: the first covers all of the first and half of the second.
  const auto lines = lines_of(draw(grey(1, 3, {30, 60, 90}), {2, console::Colours::rgb}));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == "\x1b[38;2;40;40;40m" + kHalf + "\x1b[38;2;80;80;80m" + kHalf + "\x1b[0m");
  // A chequerboard averages to grey.
  Picture board = filled(128, 128, 0);
  for (std::size_t i = 0; i < board.pixels.size(); ++i) board.pixels[i] = (i + i / 128) % 2 == 0 ? 255 : 0;
  const std::string text = draw(board, kRgb);
  CHECK(text.starts_with("\x1b[38;2;128;128;128;48;2;128;128;128m" + kHalf + kHalf));
  CHECK(std::count(text.begin(), text.end(), 'm') == 2 * 32);
}

TEST_CASE("scaling does not change an image of one colour") {
  for (const std::size_t side : {65, 99, 224, 1000}) {
    CAPTURE(side);
    const std::string text = draw(filled(side, side + 13, 201), kRgb);
    CHECK(text.starts_with("\x1b[38;2;201;201;201;48;2;201;201;201m" + kHalf));
    CHECK(std::count(text.begin(), text.end(), 'm') <= 2 * 32);
  }
}
