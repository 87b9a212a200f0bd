#include "picture.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "jpeg_decoder.hpp"
#include "png_decoder.hpp"

namespace ddprun::image_folder {
namespace {

constexpr off_t most_bytes = off_t{256} << 20;
constexpr int64_t most_pixels = 100'000'000;  // decoded, 300 MB: a small file can claim any size

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw std::runtime_error(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw std::runtime_error("is no regular file");
  if (status.st_size == 0) throw std::runtime_error("the file is empty");
  if (status.st_size > most_bytes) throw std::runtime_error("larger than the 256 MiB that are read");
  File file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) throw std::runtime_error(std::strerror(errno));
  return file;
}

std::unique_ptr<Decoder> make_decoder(std::FILE* file) {
  constexpr std::array<uint8_t, 8> png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<uint8_t, 3> jpeg = {0xff, 0xd8, 0xff};
  std::array<uint8_t, 8> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file);
  std::rewind(file);
  if (got == first.size() && first == png) return std::make_unique<PngDecoder>(file);
  if (got >= jpeg.size() && std::equal(jpeg.begin(), jpeg.end(), first.begin())) {
    return std::make_unique<JpegDecoder>(file);
  }
  throw std::runtime_error("neither a PNG nor a JPEG picture, by its first bytes");
}

void check_size(const Size& size) {
  if (size.height <= most_pixels / size.width) return;
  throw std::runtime_error(std::to_string(size.width) + " x " + std::to_string(size.height) +
                           " pixels: more than the 100 million that are read");
}

// Calls `body` with the file's decoder and header, and puts the path in front of errors.
template <class Body>
void decode(const std::string& path, Body body) {
  try {
    const File file = open_file(path);
    const std::unique_ptr<Decoder> decoder = make_decoder(file.get());
    const Format format = decoder->read_header();
    check_size(format.size);
    body(*decoder, format);
  } catch (const std::runtime_error& error) {
    throw InvalidDataset("root", path + ": " + error.what());
  }
}

uint8_t luma(const uint8_t* pixel) {  // ITU-R BT.601 with 16 fractional bits
  return static_cast<uint8_t>((19595u * pixel[0] + 38470u * pixel[1] + 7471u * pixel[2] + 32768u) >> 16);
}

}  // namespace

Size read_size(const std::string& path) {
  Size size;
  decode(path, [&](Decoder&, const Format& format) { size = format.size; });
  return size;
}

void read_planes(const std::string& path, int channels, Planes& planes) {
  decode(path, [&](Decoder& decoder, const Format& format) {
    planes.size = format.size;
    planes.decoded.resize(format.bytes());
    decoder.read_pixels(planes.decoded.data());
    planes.values.resize(format.size.pixels() * static_cast<std::size_t>(channels));
    to_planes(planes.decoded, format.channels, channels, planes.values.data());
  });
}

void to_planes(std::span<const uint8_t> pixels, int from_channels, int channels, uint8_t* planes) {
  const std::size_t count = pixels.size() / static_cast<std::size_t>(from_channels);
  if (from_channels == 1) {
    for (int plane = 0; plane < channels; ++plane) planes = std::copy(pixels.begin(), pixels.end(), planes);
  } else if (channels == 1) {
    for (std::size_t i = 0; i < count; ++i) planes[i] = luma(&pixels[3 * i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      planes[i] = pixels[3 * i];
      planes[count + i] = pixels[3 * i + 1];
      planes[2 * count + i] = pixels[3 * i + 2];
    }
  }
}

}  // namespace ddprun::image_folder
