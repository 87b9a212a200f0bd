#include "plugins/datasets/pictures.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <jpeglib.h>
#include <png.h>

namespace ddprun::testing {
namespace {

png_bytep bytes_of(const std::string& text) {
  return reinterpret_cast<png_bytep>(const_cast<char*>(text.data()));
}

void append(png_structp png, png_bytep bytes, png_size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(bytes), count);
}

void write_palette(png_structp png, png_infop info, const PngPicture& picture) {
  if (picture.palette.empty()) return;
  std::vector<png_color> entries;
  for (std::size_t i = 0; i + 2 < picture.palette.size(); i += 3) {
    const png_bytep entry = bytes_of(picture.palette) + i;
    entries.push_back({entry[0], entry[1], entry[2]});
  }
  png_set_PLTE(png, info, entries.data(), static_cast<int>(entries.size()));
  if (picture.palette_alpha.empty()) return;
  png_set_tRNS(png, info, bytes_of(picture.palette_alpha), static_cast<int>(picture.palette_alpha.size()), nullptr);
}

// The constant coefficients in one scan, then one scan for each other coefficient: the most without repetition.
std::vector<jpeg_scan_info> scans_per_coefficient(int components) {
  std::vector<jpeg_scan_info> scans = {{components, {0, 1, 2, 3}, 0, 0, 0, 0}};
  for (int component = 0; component < components; ++component) {
    for (int coefficient = 1; coefficient < DCTSIZE2; ++coefficient) {
      scans.push_back({1, {component, 0, 0, 0}, coefficient, coefficient, 0, 0});
    }
  }
  return scans;
}

}  // namespace

std::string png(const PngPicture& picture) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append, nullptr);
  png_set_IHDR(png, info, picture.width, picture.height, picture.bit_depth, picture.colour,
               picture.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  write_palette(png, info, picture);
  if (picture.gamma > 0) png_set_gAMA(png, info, picture.gamma);
  png_write_info(png, info);
  std::vector<png_bytep> rows;
  for (std::size_t row = 0; row < picture.height; ++row) {
    rows.push_back(bytes_of(picture.rows) + row * png_get_rowbytes(png, info));
  }
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::string png(uint32_t width, uint32_t height, const std::string& rgb) {
  return png({.width = width, .height = height, .rows = rgb});
}

std::string jpeg(const JpegPicture& picture) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = picture.width;
  info.image_height = picture.height;
  info.input_components = picture.components;
  info.in_color_space = picture.components == 1   ? JCS_GRAYSCALE
                        : picture.components == 3 ? JCS_RGB
                        : picture.components == 4 ? JCS_CMYK
                                                  : JCS_UNKNOWN;
  jpeg_set_defaults(&info);
  if (picture.ycck) jpeg_set_colorspace(&info, JCS_YCCK);
  jpeg_set_quality(&info, picture.quality, TRUE);
  const std::vector<jpeg_scan_info> scans = scans_per_coefficient(picture.components);
  if (picture.scans == JpegScans::progressive) jpeg_simple_progression(&info);
  if (picture.scans == JpegScans::one_per_coefficient) {
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&info, TRUE);
  const std::size_t row_bytes = std::size_t{picture.width} * static_cast<std::size_t>(picture.components);
  while (info.next_scanline < picture.height) {
    JSAMPROW row = bytes_of(picture.rows) + info.next_scanline * row_bytes;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(memory, std::free);
  return {reinterpret_cast<const char*>(memory), size};
}

std::string slope(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 200 / count + i % 3 * 20);
  return bytes;
}

}  // namespace ddprun::testing
