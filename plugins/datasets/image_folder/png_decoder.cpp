#include "png_decoder.hpp"

#include <new>
#include <stdexcept>
#include <string>

namespace ddprun::image_folder {

// As JpegDecoder::guarded: libpng longjmps back here on an error, so `body` must not hold objects with destructors.
template <class Body>
void PngDecoder::guarded(Body body) {
  if (setjmp(escape_) != 0) throw std::runtime_error("damaged PNG: " + std::string(reason_));
  body();
}

PngDecoder::PngDecoder(std::FILE* file)
    : png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, give_up, ignore_warning)),
      info_(png_ != nullptr ? png_create_info_struct(png_) : nullptr) {
  if (info_ == nullptr) {
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw std::bad_alloc();
  }
  png_init_io(png_, file);
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller has its own limit
  // Uses only the chunks that hold pixels: no gamma, no profiles, no texts.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
}

PngDecoder::~PngDecoder() {
  png_destroy_read_struct(&png_, &info_, nullptr);
}

Format PngDecoder::read_header() {
  guarded([&] { png_read_info(png_, info_); });
  const bool grey = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0;
  return {{png_get_image_width(png_, info_), png_get_image_height(png_, info_)}, grey ? 1 : 3};
}

void PngDecoder::read_pixels(uint8_t* pixels) {
  guarded([&] {
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_packing(png_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const std::size_t row_bytes = png_get_rowbytes(png_, info_);
    const png_uint_32 height = png_get_image_height(png_, info_);
    for (int pass = 0; pass < passes; ++pass) {
      for (png_uint_32 row = 0; row < height; ++row) png_read_row(png_, pixels + row * row_bytes, nullptr);
    }
    png_read_end(png_, nullptr);
  });
}

void PngDecoder::give_up(png_structp png, png_const_charp message) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder.reason_, sizeof decoder.reason_, "%s", message);
  std::longjmp(decoder.escape_, 1);
}

}  // namespace ddprun::image_folder
