// From images to samples: properties of every image. tests/data/image_parity.py compares with Pillow and PyTorch.
#include "ddprun/plugin/image_transform.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ddprun {
namespace {

using Pixels = std::vector<uint8_t>;
using Sample = std::vector<float>;

struct Picture {
  int64_t channels, height, width;
  Pixels pixels;
  ImageView view() const { return {pixels.data(), channels, height, width}; }
};

Picture any_picture(int64_t largest) {
  const auto channels = *rc::gen::element<int64_t>(1, 3);
  const auto height = *rc::gen::inRange<int64_t>(1, largest), width = *rc::gen::inRange<int64_t>(1, largest);
  const auto count = static_cast<std::size_t>(channels * height * width);
  return {channels, height, width, *rc::gen::container<Pixels>(count, rc::gen::arbitrary<uint8_t>())};
}

ImageOptions options(int64_t size, int64_t padding = 0, bool flip = false) {
  return {size, padding, flip, {0}, {1}};
}

Sample apply(const ImageOptions& options, const Picture& picture, int64_t index = 0, int64_t epoch = 0,
             uint64_t seed = 7) {
  const ImageTransform transform(options, picture.channels, seed);
  Sample sample(transform.field(picture.height, picture.width).elements());
  transform.apply(picture.view(), index, epoch, sample.data());
  return sample;
}

// An image of 10 rows and 12 columns whose pixels are 1 to 120.
Picture numbered() {
  Picture picture{1, 10, 12, {}};
  for (int i = 1; i <= 120; ++i) picture.pixels.push_back(static_cast<uint8_t>(i));
  return picture;
}

// The window of a numbered image at this offset (negative: left and up), mirrored or not.
Sample window_of(const Picture& picture, int64_t down, int64_t right, bool mirrored) {
  Sample sample;
  for (int64_t row = down; row < picture.height + down; ++row) {
    for (int64_t i = 0; i < picture.width; ++i) {
      const int64_t column = right + (mirrored ? picture.width - 1 - i : i);
      const bool inside = row >= 0 && row < picture.height && column >= 0 && column < picture.width;
      const int value = inside ? picture.pixels[static_cast<std::size_t>(row * picture.width + column)] : 0;
      sample.push_back(static_cast<float>(value) / 255.0f);
    }
  }
  return sample;
}

constexpr auto kOptions = image_options();

std::string option_error(const std::map<std::string, std::string>& values, int64_t channels) {
  const DatasetContext context{"", values, 0};
  try {
    read_image_options(DatasetOptions("pictures", context, kOptions), channels);
  } catch (const InvalidDataset& error) {
    return error.key() + ": " + error.what();
  }
  return "read";
}

TEST_CASE("an image of the right size keeps its values, divided by 255") {
  CHECK(rc::check([] {
    Picture picture = any_picture(20);
    const bool square = picture.height == picture.width;
    const Sample sample = apply(options(square ? picture.height : 0), picture);
    for (std::size_t i = 0; i < sample.size(); ++i) {
      RC_ASSERT(sample[i] == static_cast<float>(picture.pixels[i]) / 255.0f);
    }
  }));
}

TEST_CASE("values are normalised channel by channel, each step rounded to float32") {
  const Picture picture{3, 1, 2, {0, 255, 0, 255, 0, 255}};
  ImageOptions three = options(0);
  three.mean = {0.5, 0.25, 0.125};
  three.deviation = {0.5, 2, 0.3};
  CHECK(apply(three, picture) == Sample{-1, 1, -0.125f, 0.375f, (0 - 0.125f) / 0.3f, (1 - 0.125f) / 0.3f});
  three.mean = {0.5};
  CHECK(apply(three, picture) == Sample{-1, 1, -0.25f, 0.25f, (0 - 0.5f) / 0.3f, (1 - 0.5f) / 0.3f});
}

TEST_CASE("a sample has the size in the options, or that of the image") {
  CHECK(ImageTransform(options(0), 3, 0).field(5, 7).shape == std::vector<int64_t>{3, 5, 7});
  CHECK(ImageTransform(options(9), 1, 0).field(5, 7).shape == std::vector<int64_t>{1, 9, 9});
}

TEST_CASE("an image of one colour keeps it at every size") {
  CHECK(rc::check([] {
    Picture picture = any_picture(70);
    const auto colour = *rc::gen::arbitrary<uint8_t>();
    std::fill(picture.pixels.begin(), picture.pixels.end(), colour);
    for (const float value : apply(options(*rc::gen::inRange<int64_t>(1, 90)), picture)) {
      RC_ASSERT(value == static_cast<float>(colour) / 255.0f);
    }
  }));
}

TEST_CASE("a resized image stays between its darkest and its brightest value") {
  CHECK(rc::check([] {
    const Picture picture = any_picture(70);
    const auto [low, high] = std::minmax_element(picture.pixels.begin(), picture.pixels.end());
    for (const float value : apply(options(*rc::gen::inRange<int64_t>(1, 90)), picture)) {
      RC_ASSERT(value >= static_cast<float>(*low) / 255.0f - 1e-6f);
      RC_ASSERT(value <= static_cast<float>(*high) / 255.0f + 1e-6f);
    }
  }));
}

TEST_CASE("two columns become four, computed by hand") {
  const Picture picture{1, 1, 2, {0, 200}};
  CHECK(apply(options(1), picture) == Sample{100 / 255.0f});
  const Sample four = apply(options(4), picture);
  CHECK(Sample(four.begin(), four.begin() + 4) == Sample{0, 50 / 255.0f, 150 / 255.0f, 200 / 255.0f});
}

TEST_CASE("shrinking is antialiased") {
  Picture picture{1, 64, 64, Pixels(64 * 64, 0)};
  for (std::size_t i = 0; i < 64 * 64; i += 8) picture.pixels[i] = 255;  // every eighth column
  for (const float value : apply(options(8), picture)) CHECK(value == doctest::Approx(0.125).epsilon(0.15));
}

TEST_CASE("different sizes on one thread do not affect each other") {
  CHECK(rc::check([] {
    const Picture first = any_picture(40), second = any_picture(40);
    const ImageOptions wanted = options(*rc::gen::inRange<int64_t>(1, 60));
    const Sample expected = apply(wanted, first);
    apply(wanted, second);
    RC_ASSERT(apply(wanted, first) == expected);
  }));
}

TEST_CASE("a crop is a window of the padded image, mirrored or not, and all windows occur") {
  const Picture picture = numbered();
  std::set<Sample> windows;
  for (int64_t down = -1; down <= 1; ++down) {
    for (int64_t right = -1; right <= 1; ++right) {
      for (const bool mirrored : {false, true}) windows.insert(window_of(picture, down, right, mirrored));
    }
  }
  REQUIRE(windows.size() == 18);
  std::set<Sample> seen;
  for (int64_t index = 0; index < 500; ++index) {
    const Sample sample = apply(options(0, 1, true), picture, index);
    REQUIRE(windows.contains(sample));
    seen.insert(sample);
  }
  CHECK(seen == windows);
}

TEST_CASE("padding wider than the image gives blank samples, not errors") {
  const Picture picture{1, 2, 2, {255, 255, 255, 255}};
  int blank = 0;
  for (int64_t index = 0; index < 200; ++index) {
    const Sample sample = apply(options(0, 9, true), picture, index);
    blank += std::count(sample.begin(), sample.end(), 0.0f) == 4;
  }
  CHECK(blank > 100);
  CHECK(blank < 200);
}

TEST_CASE("padding is black before values are normalised") {
  const Picture picture{1, 1, 1, {255}};
  ImageOptions wanted = options(2, 2);
  wanted.mean = {0.5};
  wanted.deviation = {0.5};
  std::set<float> values;
  for (int64_t index = 0; index < 50; ++index) {
    for (const float value : apply(wanted, picture, index)) values.insert(value);
  }
  CHECK(values == std::set<float>{-1, 1});
}

TEST_CASE("about half of the samples are flipped, and all offsets of a crop are about equally frequent") {
  const Picture picture = numbered();
  int mirrored = 0;
  for (int64_t index = 0; index < 2000; ++index) {
    const Sample sample = apply(options(0, 0, true), picture, index);
    const bool flipped = sample != window_of(picture, 0, 0, false);
    if (flipped) CHECK(sample == window_of(picture, 0, 0, true));
    mirrored += flipped;
  }
  CHECK(mirrored > 900);
  CHECK(mirrored < 1100);
  std::map<Sample, int> places;
  for (int64_t epoch = 0; epoch < 9000; ++epoch) ++places[apply(options(0, 1), picture, 3, epoch)];
  CHECK(places.size() == 9);
  for (const auto& [sample, count] : places) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("random choices depend on seed, epoch and index, and on nothing else") {
  const Picture picture = numbered();
  const ImageOptions wanted = options(0, 4, true);
  const auto draws = [&](uint64_t seed, int64_t epoch) {
    std::vector<Sample> samples;
    for (int64_t index = 0; index < 20; ++index) samples.push_back(apply(wanted, picture, index, epoch, seed));
    return samples;
  };
  CHECK(draws(1, 0) == draws(1, 0));
  CHECK(draws(1, 0) != draws(2, 0));
  CHECK(draws(1, 0) != draws(1, 1));
  const auto indices = draws(1, 0);
  CHECK(std::set<Sample>(indices.begin(), indices.end()).size() > 10);
}

TEST_CASE("without randomness, and in the plain epoch, every sample is the plain one") {
  const Picture picture = numbered();
  const ImageTransform plain = ImageTransform(options(20, 4, true), 1, 7).without_randomness();
  for (int64_t index = 0; index < 20; ++index) {
    Sample sample(400);
    plain.apply(picture.view(), index, index, sample.data());
    CHECK(sample == apply(options(20), picture));
    CHECK(apply(options(20, 4, true), picture, index, kPlainEpoch) == sample);
  }
}

TEST_CASE("many threads make the same samples as one") {
  const Picture picture = numbered();
  const ImageTransform transform(options(33, 4, true), 1, 7);
  const std::size_t elements = transform.field(10, 12).elements();
  const auto make = [&](Sample& all, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      transform.apply(picture.view(), i, 0, all.data() + static_cast<std::size_t>(i) * elements);
    }
  };
  Sample expected(200 * elements), parallel(200 * elements);
  make(expected, 0, 200);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 8; ++i) threads.emplace_back([&, i] { make(parallel, 25 * i, 25 * (i + 1)); });
  for (auto& thread : threads) thread.join();
  CHECK(parallel == expected);
}

TEST_CASE("options are read with defaults, and errors name key and channels") {
  const DatasetContext context{
      "", {{"image_size", "224"}, {"random_crop", "4"}, {"random_flip", "true"}, {"std", "1, 2, 3"}}, 0};
  constexpr auto with_mean = image_options("0.5");
  const auto read = read_image_options(DatasetOptions("pictures", context, with_mean), 3);
  CHECK(read.size == 224);
  CHECK(read.crop_padding == 4);
  CHECK(read.flip);
  CHECK(read.mean == std::vector<double>{0.5});
  CHECK(read.deviation == std::vector<double>{1, 2, 3});
  CHECK(option_error({}, 3) == "read");
  CHECK(option_error({{"mean", "1,2"}}, 3) == "options.mean: 2 numbers for pictures of 3 channels: expected 1, or 3");
  CHECK(option_error({{"std", "1,2"}}, 1) == "options.std: 2 numbers for pictures of 1 channel: expected 1");
  CHECK(option_error({{"std", "1,0,1"}}, 3) == "options.std: expected a list of numbers from 1e-6 to 1e6");
  CHECK(option_error({{"image_size", "-1"}}, 3) == "options.image_size: expected an integer from 0 to 8192");
}

TEST_CASE("a transform refuses an image with another number of channels") {
  ImageOptions wrong = options(0);
  wrong.mean = {1, 2};
  CHECK_THROWS_WITH_AS(ImageTransform(wrong, 3, 0), "2 means or deviations for 3 channels", std::invalid_argument);
  const Picture picture = numbered();
  Sample sample(360);
  CHECK_THROWS_WITH_AS(ImageTransform(options(0), 3, 0).apply(picture.view(), 0, 0, sample.data()),
                       "a picture of 1 channels, where 3 were expected", std::invalid_argument);
}

}  // namespace
}  // namespace ddprun
