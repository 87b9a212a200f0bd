#include "jpeg_decoder.hpp"

#include <jerror.h>

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
  if (space == JCS_CMYK || space == JCS_YCCK) {
    throw std::runtime_error("a CMYK JPEG, made for printing; convert it to RGB");
  }
  const bool grey = space == JCS_GRAYSCALE;
  if (!grey && space != JCS_YCbCr && space != JCS_RGB) {
    throw std::runtime_error("a JPEG of " + std::to_string(info_.num_components) +
                             " components; expected 1 (grey) or 3 (colour)");
  }
  info_.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  return {{info_.image_width, info_.image_height}, grey ? 1 : 3};
}

void JpegDecoder::read_pixels(uint8_t* pixels) {
  guarded([&] {
    jpeg_start_decompress(&info_);
    const std::size_t row_bytes = std::size_t{info_.output_width} * static_cast<std::size_t>(info_.output_components);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels + info_.output_scanline * row_bytes;
      jpeg_read_scanlines(&info_, &row, 1);
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
