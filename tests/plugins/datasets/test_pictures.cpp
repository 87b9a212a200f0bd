// Every kind of PNG and JPEG gives the same pixels as PIL's convert("RGB") and convert("L").
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "plugins/datasets/image_folder.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

const OptionMap grey = {{"channels", "1"}};

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// Planes of red, green and blue from the rows of an RGB picture.
std::vector<int> planes_of(const std::string& rgb) {
  std::vector<int> planes;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t i = channel; i < rgb.size(); i += 3) planes.push_back(static_cast<uint8_t>(rgb[i]));
  }
  return planes;
}

int largest_difference(const std::vector<int>& a, const std::vector<int>& b) {
  REQUIRE(a.size() == b.size());
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("RGB is read bit for bit, interlaced too, as planes with the rows from the top") {
  std::string rgb;
  for (int i = 0; i < 9 * 7 * 3; ++i) rgb += static_cast<char>(i * 37);
  CHECK(pixels_of(png(9, 7, rgb)) == planes_of(rgb));
  CHECK(pixels_of(png({.width = 9, .height = 7, .rows = rgb, .interlaced = true})) == planes_of(rgb));
}

TEST_CASE("grey of 1, 2, 4 and 8 bits is spread to 0..255 and repeated") {
  const auto spread = [](int depth, const std::string& row, const OptionMap& options) {
    return pixels_of(png({.width = 4, .height = 1, .bit_depth = depth, .colour = 0, .rows = row}), options);
  };
  CHECK(spread(1, bytes({0b01100000}), grey) == std::vector<int>{0, 255, 255, 0});
  CHECK(spread(2, bytes({0b00011011}), grey) == std::vector<int>{0, 85, 170, 255});
  CHECK(spread(4, bytes({0x05, 0xaf}), grey) == std::vector<int>{0, 85, 170, 255});
  CHECK(spread(8, bytes({0, 7, 200, 255}), grey) == std::vector<int>{0, 7, 200, 255});
  CHECK(spread(8, bytes({0, 7, 200, 255}), {}) == std::vector<int>{0, 7, 200, 255, 0, 7, 200, 255, 0, 7, 200, 255});
}

TEST_CASE("of 16 bits only the upper eight are used") {
  const std::string rgb = bytes({0x12, 0xff, 0x00, 0x80, 0xff, 0x00});
  CHECK(pixels_of(png({.width = 1, .height = 1, .bit_depth = 16, .colour = 2, .rows = rgb})) ==
        std::vector<int>{0x12, 0, 0xff});
  CHECK(pixels_of(png({.width = 3, .height = 1, .bit_depth = 16, .colour = 0, .rows = rgb}), grey) ==
        std::vector<int>{0x12, 0, 0xff});
}

TEST_CASE("alpha is ignored, not blended") {
  const std::string rgba = bytes({10, 20, 30, 0, 200, 100, 50, 128});
  CHECK(pixels_of(png({.width = 2, .height = 1, .colour = 6, .rows = rgba})) ==
        std::vector<int>{10, 200, 20, 100, 30, 50});
  CHECK(pixels_of(png({.width = 2, .height = 1, .colour = 4, .rows = bytes({10, 0, 200, 128})}), grey) ==
        std::vector<int>{10, 200});
}

TEST_CASE("a palette's colours are used and made grey, whatever its transparency") {
  const PngPicture picture{.width = 4,
                           .height = 1,
                           .bit_depth = 2,
                           .colour = 3,
                           .rows = bytes({0b00011011}),
                           .palette = bytes({1, 2, 3, 40, 50, 60, 70, 80, 90, 255, 0, 128}),
                           .palette_alpha = bytes({0, 128})};
  CHECK(pixels_of(png(picture)) == std::vector<int>{1, 40, 70, 255, 2, 50, 80, 0, 3, 60, 90, 128});
  CHECK(pixels_of(png(picture), grey) == std::vector<int>{2, 48, 78, 91});
}

TEST_CASE("gamma changes nothing") {
  const std::string rgb = bytes({10, 100, 200});
  CHECK(pixels_of(png({.width = 1, .height = 1, .rows = rgb, .gamma = 1.0})) == std::vector<int>{10, 100, 200});
}

TEST_CASE("a JPEG is close to its source, baseline and progressive, in colour and grey") {
  std::string rgb, luminance;
  for (int row = 0; row < 24; ++row) {
    for (int column = 0; column < 40; ++column) {
      rgb += bytes({4 * column, 8 * row, 100});
      luminance += static_cast<char>(3 * column + 4 * row);
    }
  }
  for (const JpegScans scans : {JpegScans::baseline, JpegScans::progressive}) {
    const auto colour =
        pixels_of(jpeg({.width = 40, .height = 24, .components = 3, .rows = rgb, .quality = 100, .scans = scans}));
    CHECK(largest_difference(colour, planes_of(rgb)) < 10);
    const std::string one =
        jpeg({.width = 40, .height = 24, .components = 1, .rows = luminance, .quality = 100, .scans = scans});
    const std::vector<int> expected = [&] {
      std::vector<int> values;
      for (const char value : luminance) values.push_back(static_cast<uint8_t>(value));
      return values;
    }();
    CHECK(largest_difference(pixels_of(one, grey), expected) <= 2);
    const auto repeated = pixels_of(one);
    CHECK(repeated.size() == 3 * expected.size());
    CHECK(std::equal(repeated.begin(), repeated.begin() + 960, repeated.begin() + 960));
  }
}

TEST_CASE("a CMYK JPEG, also as YCCK, has the colours of PIL's convert") {
  struct Case {
    std::array<int, 4> stored;  // inverted, as Adobe stores CMYK
    std::vector<int> rgb;       // PIL's
    int grey;
  };
  const std::vector<Case> cases = {{{200, 100, 50, 255}, {200, 100, 50}, 124},
                                   {{200, 100, 50, 128}, {100, 50, 25}, 62},
                                   {{0, 255, 17, 90}, {0, 90, 6}, 54},
                                   {{255, 255, 255, 255}, {255, 255, 255}, 255},
                                   {{10, 20, 30, 0}, {0, 0, 0}, 0}};
  for (const Case& one : cases) {
    CAPTURE(one.stored[0]);
    std::string rows;
    for (int pixel = 0; pixel < 64; ++pixel) {
      for (const int value : one.stored) rows += static_cast<char>(value);
    }
    for (const bool ycck : {false, true}) {
      CAPTURE(ycck);
      const std::string file =
          jpeg({.width = 8, .height = 8, .components = 4, .rows = rows, .quality = 100, .ycck = ycck});
      const std::vector<int> colour = pixels_of(file);
      REQUIRE(colour.size() == 3 * 64);
      CHECK(largest_difference({colour[0], colour[64], colour[191]}, one.rgb) <= (ycck ? 2 : 1));
      CHECK(std::abs(pixels_of(file, grey).at(0) - one.grey) <= (ycck ? 2 : 1));
    }
  }
}

TEST_CASE("the orientation in EXIF data is ignored") {
  const std::string plain = jpeg({.width = 16, .height = 8, .rows = slope(16 * 8 * 3)});
  // An APP1 segment with one entry: orientation (0x0112) = 6, a quarter turn.
  const std::string exif = bytes({0xff, 0xe1, 0,    34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                  0,    1,    0x01, 0x12, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0});
  CHECK(pixels_of(plain.substr(0, 2) + exif + plain.substr(2)) == pixels_of(plain));
}
