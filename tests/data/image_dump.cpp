// Prints the samples that ddprun/plugin/image_transform.hpp makes, for image_parity.py. Each case on stdin is a line,
//   SIZE CHANNELS HEIGHT WIDTH MEAN STD    (MEAN and STD with commas between channels)
// and then the image's bytes; each answer on stdout is the sample as native float32.
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/plugin/image_transform.hpp"

namespace {

struct Case {
  std::string size, mean, deviation;
  int64_t channels = 0, height = 0, width = 0;
};

Case read_case(const std::string& line) {
  std::istringstream words(line);
  Case wanted;
  words >> wanted.size >> wanted.channels >> wanted.height >> wanted.width >> wanted.mean >> wanted.deviation;
  if (!words) throw std::runtime_error("cannot read the case: " + line);
  return wanted;
}

constexpr auto kOptions = ddprun::image_options();

std::vector<float> answer(const Case& wanted, const std::vector<uint8_t>& pixels) {
  const ddprun::DatasetContext context{
      "", {{"image_size", wanted.size}, {"mean", wanted.mean}, {"std", wanted.deviation}}, 0};
  const ddprun::DatasetOptions options("parity", context, kOptions);
  const ddprun::ImageTransform transform(ddprun::read_image_options(options, wanted.channels), wanted.channels, 0);
  std::vector<float> sample(transform.field(wanted.height, wanted.width).elements());
  transform.apply({pixels.data(), wanted.channels, wanted.height, wanted.width}, 0, 0, sample.data());
  return sample;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const Case wanted = read_case(line);
    std::vector<uint8_t> pixels(static_cast<std::size_t>(wanted.channels * wanted.height * wanted.width));
    std::cin.read(reinterpret_cast<char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    const auto sample = answer(wanted, pixels);
    std::cout.write(reinterpret_cast<const char*>(sample.data()), static_cast<std::streamsize>(4 * sample.size()));
    std::cout.flush();
  }
}
