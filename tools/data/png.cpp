#include "tools/data/png.hpp"

#include <png.h>

#include <algorithm>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::info {
namespace {

struct Encoder {
  png_image image{};
  Encoder() { image.version = PNG_IMAGE_VERSION; }
  ~Encoder() { png_image_free(&image); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
};

void refuse_large(const Picture& picture, std::size_t scale) {
  if (std::max(picture.height, picture.width) <= most_png_side / scale) return;
  throw Error(ExitCode::usage, "a PNG of " + std::to_string(picture.height) + " x " + std::to_string(picture.width) +
                                   " pixels, " + std::to_string(scale) + " times enlarged: a side has at most " +
                                   std::to_string(most_png_side));
}

}  // namespace

std::string encode_png(const Picture& picture, std::size_t scale) {
  refuse_large(picture, scale);
  const Picture drawn = enlarged(picture, scale);
  Encoder encoder;
  png_image& image = encoder.image;
  image.width = static_cast<png_uint_32>(drawn.width);
  image.height = static_cast<png_uint_32>(drawn.height);
  image.format = drawn.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, drawn.pixels.data(), 0, nullptr)) {
    throw Error(ExitCode::failure, std::string("cannot encode a PNG: ") + image.message);
  }
  bytes.resize(size);
  return bytes;
}

void write_png(const std::string& path, const Picture& picture, std::size_t scale) {
  replace_file(path, encode_png(picture, scale));
}

}  // namespace ddprun::info
