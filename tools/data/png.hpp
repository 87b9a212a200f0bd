// Images as PNG files (ISO/IEC 15948), by libpng.
#pragma once

#include <cstddef>
#include <string>

#include "tools/data/picture.hpp"

namespace ddprun::info {

// The longest side of a PNG, in pixels.
constexpr std::size_t most_png_side = 16384;

// A whole PNG file: 8 bits, grey or RGB, every pixel as a square of `scale` by `scale`. Throws Error(usage) if a side
// would be longer than most_png_side, Error(failure) with libpng's message.
std::string encode_png(const Picture& picture, std::size_t scale = 1);

// Writes it with replace_file(). Throws as both.
void write_png(const std::string& path, const Picture& picture, std::size_t scale = 1);

}  // namespace ddprun::info
