// PNG and JPEG files of every kind for tests, and folders of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/temp_dir.hpp"

namespace ddprun::testing {

// What libpng writes: rows packed as the bit depth says, 16 bits big-endian.
struct PngPicture {
  uint32_t width = 0;
  uint32_t height = 0;
  int bit_depth = 8;
  int colour = 2;                  // 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
  std::string rows;                // from the top
  std::string palette = {};        // red, green, blue of each entry
  std::string palette_alpha = {};  // of the first entries
  double gamma = 0;                // of a gAMA chunk; 0: none
  bool interlaced = false;
};
std::string png(const PngPicture& picture);

// 8-bit RGB without options.
std::string png(uint32_t width, uint32_t height, const std::string& rgb);

enum class JpegScans { baseline, progressive, one_per_coefficient };

struct JpegPicture {
  unsigned width = 0;
  unsigned height = 0;
  int components = 3;  // 1 grey, 3 RGB, 4 CMYK
  std::string rows;
  int quality = 90;
  JpegScans scans = JpegScans::baseline;
  bool ycck = false;  // CMYK stored as YCCK
};
std::string jpeg(const JpegPicture& picture);

// `count` bytes that change slowly: as rows of a picture, JPEG keeps them well.
std::string slope(std::size_t count);

// A root with files anywhere below it.
class PictureFolder : public TempDir {
 public:
  std::string root() const { return path().string(); }
  std::string file(const std::string& name) const { return (path() / name).string(); }
  // Writes a file, and creates its folders.
  void add(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path() / name).parent_path());
    write(name, bytes);
  }
};

}  // namespace ddprun::testing
