// The images in a folder and their classes: one folder per class, as in torchvision's ImageFolder. An image file: its
// size, and its pixels as planes. The first bytes decide whether it is PNG or JPEG.
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

// The decoded pixels: row by row, one byte for grey (channels 1), three for red, green, blue (channels 3).
struct Format {
  Size size;
  int channels = 3;
  std::size_t bytes() const { return size.pixels() * static_cast<std::size_t>(channels); }
};

// Decodes one file. Single-threaded; the caller owns the file. All functions throw std::runtime_error with only the
// reason.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // First call: reads up to the pixels.
  virtual Format read_header() = 0;
  // Second call: reads the rest of the file and writes format.bytes() bytes.
  virtual void read_pixels(uint8_t* pixels) = 0;
};

// Memory that one thread reuses from image to image.
struct Planes {
  Size size;
  std::vector<uint8_t> values;  // [channels, height, width]
  std::vector<uint8_t> decoded;
};

// The size, from the file's header. Thread-safe. Throws InvalidDataset("root") with the path and the reason: not a
// regular file, larger than 256 MiB, neither PNG nor JPEG, damaged before the pixels, more than 100 million pixels, or
// any other format that read_planes would reject.
Size read_size(const std::string& path);

// The pixels, 8 bits each, as red, green and blue (channels 3) or grey (channels 1). Equal to PIL's convert("RGB") and
// convert("L"): CMYK becomes RGB without a colour profile, alpha, transparency and gamma are ignored, palettes are
// applied, grey is repeated, and colour is converted to grey by (19595 red + 38470 green + 7471 blue + 32768) >> 16.
// One difference: of 16-bit values the upper 8 bits are used; PIL clips 16-bit grey at 255. The orientation in EXIF
// data is ignored. Thread-safe. Throws as above, also if the file is truncated or damaged; the planes are undefined
// then.
void read_planes(const std::string& path, int channels, Planes& planes);

// Converts interleaved pixels of 1 or 3 channels to planes of `channels`; see read_planes. Sizes must match.
void to_planes(std::span<const uint8_t> pixels, int from_channels, int channels, uint8_t* planes);

struct Picture {
  std::string path;
  int64_t target = 0;  // index of its class in Folder::classes
};

struct Folder {
  std::vector<std::string> classes;  // names of the class folders of the training split, sorted
  std::vector<Picture> train;
  std::vector<Picture> test;  // empty without a test split
};

// Finds <root>/train/<class>/ and <root>/test/<class>/, or <root>/val/<class>/ if there is no test/. A root without any
// of the three is itself the training split. The images of a class are all files below its folder whose names end in
// .png, .jpg or .jpeg, in any case. Classes and files are in bytewise order of names, files in subfolders ordered by
// the subfolder first. This is the order of ImageFolder, so indices and targets are equal. Follows links, also out of
// the root, but not in cycles. Opens no file. Throws InvalidDataset("root").
Folder scan(const std::string& root);

}  // namespace ddprun::image_folder
