#include "jpeg_decoder.hpp"

#include <jerror.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

namespace ddprun::image_folder {
namespace {

// A progressive file may repeat scans without limit, each as expensive as a whole image; encoders write about ten.
constexpr int most_scans = 100;

// Warnings after which all pixels are still valid.
bool is_harmless(int message) {
  return message == JWRN_EXTRANEOUS_DATA || message == JWRN_TOO_MUCH_DATA || message == JWRN_ADOBE_XFORM ||
         message == JWRN_JFIF_MAJOR || message == JWRN_BOGUS_ICC;
}

// One row of CMYK as Adobe stores it, inverted, by the arithmetic of PIL's convert("RGB").
void to_rgb(std::span<const uint8_t> row, uint8_t* rgb) {
  for (std::size_t i = 0; i < row.size(); i += 4) {
    const int light = row[i + 3];  // 255 - black
    for (std::size_t colour = i; colour < i + 3; ++colour) {
      const int product = (255 - row[colour]) * light + 128;
      *rgb++ = static_cast<uint8_t>(std::max(0, light - (((product >> 8) + product) >> 8)));
    }
  }
}

}  // namespace

// Calls libjpeg functions. On an error libjpeg longjmps back here, past its own frames and `body`, which therefore must
// not hold objects with destructors. The error is then thrown as an exception.
template <class Body>
void JpegDecoder::guarded(Body body) {
  if (setjmp(errors_.escape) != 0) throw std::runtime_error("damaged JPEG: " + std::string(errors_.reason));
  body();
}

JpegDecoder::JpegDecoder(std::FILE* file) {
  info_.err = jpeg_std_error(&errors_);
  errors_.error_exit = give_up;
  errors_.emit_message = take_message;
  progress_.progress_monitor = count_scans;
  guarded([&] {
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_stdio_src(&info_, file);
  });
}

JpegDecoder::~JpegDecoder() {
  jpeg_destroy_decompress(&info_);
}

Format JpegDecoder::read_header() {
  guarded([&] { jpeg_read_header(&info_, TRUE); });
  const J_COLOR_SPACE space = info_.jpeg_color_space;
  const bool grey = space == JCS_GRAYSCALE, cmyk = space == JCS_CMYK || space == JCS_YCCK;
  if (!grey && !cmyk && space != JCS_YCbCr && space != JCS_RGB) {
    throw std::runtime_error("a JPEG of " + std::to_string(info_.num_components) +
                             " components; expected 1 (grey), 3 (colour) or 4 (CMYK)");
  }
  info_.out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  if (cmyk) cmyk_row_.resize(std::size_t{info_.image_width} * 4);
  return {{info_.image_width, info_.image_height}, grey ? 1 : 3};
}

void JpegDecoder::read_pixels(uint8_t* pixels) {
  guarded([&] {
    jpeg_start_decompress(&info_);
    const std::size_t row_bytes = std::size_t{info_.output_width} * (info_.out_color_space == JCS_GRAYSCALE ? 1 : 3);
    while (info_.output_scanline < info_.output_height) {
      uint8_t* const out = pixels + info_.output_scanline * row_bytes;
      JSAMPROW row = cmyk_row_.empty() ? out : cmyk_row_.data();
      jpeg_read_scanlines(&info_, &row, 1);
      if (!cmyk_row_.empty()) to_rgb(cmyk_row_, out);
    }
    jpeg_finish_decompress(&info_);
  });
}

void JpegDecoder::give_up(j_common_ptr common) {
  auto& errors = static_cast<Errors&>(*common->err);
  errors.format_message(common, errors.reason);
  std::longjmp(errors.escape, 1);
}

// Level -1 is a warning, others are traces. After a warning libjpeg continues and fills missing pixels with grey.
void JpegDecoder::take_message(j_common_ptr common, int level) {
  if (level < 0 && !is_harmless(common->err->msg_code)) give_up(common);
}

void JpegDecoder::count_scans(j_common_ptr common) {
  const auto* const info = reinterpret_cast<jpeg_decompress_struct*>(common);
  if (info->input_scan_number <= most_scans) return;
  auto& errors = static_cast<Errors&>(*common->err);
  std::snprintf(errors.reason, sizeof errors.reason, "more than %d scans", most_scans);
  std::longjmp(errors.escape, 1);
}

}  // namespace ddprun::image_folder
