// Decodes JPEG with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <csetjmp>
#include <vector>

#include "picture.hpp"

namespace ddprun::image_folder {

// Baseline and progressive, 8 bits, grey, colour or CMYK. Damage that libjpeg would fill with grey is an
// error; harmless defects (extra bytes between segments) are not.
class JpegDecoder : public Decoder {
 public:
  explicit JpegDecoder(std::FILE* file);
  ~JpegDecoder() override;
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Format read_header() override;
  void read_pixels(uint8_t* pixels) override;

 private:
  struct Errors : jpeg_error_mgr {
    std::jmp_buf escape;
    char reason[JMSG_LENGTH_MAX];
  };
  template <class Body>
  void guarded(Body body);
  [[noreturn]] static void give_up(j_common_ptr common);
  static void take_message(j_common_ptr common, int level);
  static void count_scans(j_common_ptr common);

  jpeg_decompress_struct info_{};
  Errors errors_{};
  jpeg_progress_mgr progress_{};
  std::vector<uint8_t> cmyk_row_;  // empty for other pictures
};

}  // namespace ddprun::image_folder
