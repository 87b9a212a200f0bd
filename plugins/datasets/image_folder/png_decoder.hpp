// Decodes PNG with libpng.
#pragma once

#include <png.h>

#include <csetjmp>
#include <cstdio>

#include "picture.hpp"

namespace ddprun::image_folder {

// Every kind of PNG, also interlaced. Does not use libpng's simplified interface, because that applies gamma and blends
// transparent pixels with a background; this class must return the values in the file.
class PngDecoder : public Decoder {
 public:
  explicit PngDecoder(std::FILE* file);
  ~PngDecoder() override;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Format read_header() override;
  void read_pixels(uint8_t* pixels) override;

 private:
  template <class Body>
  void guarded(Body body);
  [[noreturn]] static void give_up(png_structp png, png_const_charp message);
  static void ignore_warning(png_structp, png_const_charp) {}

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf escape_;
  char reason_[256] = "";
};

}  // namespace ddprun::image_folder
