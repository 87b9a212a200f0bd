// A picture in a file: its size, and its pixels as planes. Whether it is PNG or JPEG is seen from its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace ddprun::image_folder {

struct Size {
  int64_t width = 0;
  int64_t height = 0;
  std::size_t pixels() const { return static_cast<std::size_t>(width * height); }
  bool operator==(const Size&) const = default;
};

// How the pixels come out of a file: row by row, a byte for grey (channels 1), three for red, green, blue (3).
struct Format {
  Size size;
  int channels = 3;
  std::size_t bytes() const { return size.pixels() * static_cast<std::size_t>(channels); }
};

// One file being decoded. One thread; the file is the caller's. All throw std::runtime_error with the reason alone.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // First call: up to where the pixels begin.
  virtual Format read_header() = 0;
  // Second call: the rest of the file. Writes format.bytes() bytes.
  virtual void read_pixels(uint8_t* pixels) = 0;
};

// Memory that is used again from picture to picture of one thread.
struct Planes {
  Size size;
  std::vector<uint8_t> values;  // [channels, height, width]
  std::vector<uint8_t> decoded;
};

// The size, from the file's header alone; a kind of picture that read_planes would refuse is refused here. Any thread.
// Throws InvalidDataset("root") with the path and the reason: no regular file, larger than 256 MiB, neither PNG nor JPEG,
// damaged up to its pixels, more than 100 million pixels, CMYK.
Size read_size(const std::string& path);

// The pixels, as 8 bits each, in red, green and blue (channels 3) or grey (channels 1). Equal to PIL's convert("RGB")
// and convert("L"): alpha, transparency and gamma are left aside, palettes looked up, grey repeated, and grey made of
// colour as (19595 red + 38470 green + 7471 blue + 32768) >> 16. Of 16 bits the upper 8 are taken, where PIL cuts
// 16-bit grey off at 255. The orientation in EXIF data is ignored. Any thread. Throws as above, also where the file is
// cut off or damaged; the planes are undefined then.
void read_planes(const std::string& path, int channels, Planes& planes);

// Interleaved pixels of 1 or 3 channels to planes of `channels`; see read_planes. Sizes must fit.
void to_planes(std::span<const uint8_t> pixels, int from_channels, int channels, uint8_t* planes);

}  // namespace ddprun::image_folder
