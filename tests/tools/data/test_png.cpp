#include <doctest/doctest.h>
#include <png.h>
#include <unistd.h>

#include <numeric>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "tools/data/picture.hpp"

using namespace ddprun;
using namespace ddprun::info;
using namespace ddprun::testing;

namespace {

// The image as libpng reads it, in the file's format.
Picture decoded(const std::string& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE_MESSAGE(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()), image.message);
  CHECK((image.format & ~PNG_FORMAT_FLAG_COLOR) == 0);  // 8 bits, no palette, no transparency
  Picture picture{image.height, image.width, PNG_IMAGE_SAMPLE_CHANNELS(image.format), {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  REQUIRE_MESSAGE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr), image.message);
  return picture;
}

// Neighbouring pixels have different values.
Picture ramp(std::size_t height, std::size_t width, std::size_t channels) {
  Picture picture{height, width, channels, std::vector<uint8_t>(height * width * channels)};
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<uint8_t>(i * 37);
  return picture;
}

void check_same(const Picture& a, const Picture& b) {
  CHECK(a.height == b.height);
  CHECK(a.width == b.width);
  CHECK(a.channels == b.channels);
  CHECK(a.pixels == b.pixels);
}

std::size_t entries(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

TEST_CASE("an image is read back pixel for pixel, grey and in colours, of any size") {
  const TempDir folder;
  const std::string path = (folder.path() / "image.png").string();
  for (const std::size_t channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{1, 1}, {28, 28}, {3, 301}}) {
      const Picture picture = ramp(height, width, channels);
      write_png(path, picture);
      check_same(decoded(read_file(path)), picture);
    }
  }
}

TEST_CASE("the file replaces another, and leaves no other file") {
  const TempDir folder;
  const std::string path = folder.write("sample.png", "an older file");
  write_png(path, ramp(4, 4, 1));
  check_same(decoded(read_file(path)), ramp(4, 4, 1));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a path that cannot be written is one line with path and reason, and nothing is left behind") {
  const TempDir folder;
  const auto refusal = [](const std::string& path) { return error_of([&] { write_png(path, ramp(2, 2, 1)); }); };
  const std::string missing = refusal((folder.path() / "none/a.png").string());
  CHECK(contains(missing, "1: cannot write "));
  CHECK(contains(missing, "none/a.png"));
  CHECK(contains(missing, "there is no folder "));
  CHECK(refusal(folder.path().string()) == "1: cannot write " + folder.path().string() + ": Is a directory");
  CHECK(refusal(folder.write("file", "") + "/a.png")
            .ends_with("there is no folder " + (folder.path() / "file").string()));
  CHECK(refusal("").starts_with("1: cannot "));
  CHECK(entries(folder.path()) == 1);
}
