#include "train/loop/tensor_digest.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace ddprun::train {
namespace {

constexpr std::size_t kSketch = 8;

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): hashes a position to bits that look independent.
uint64_t mixed(uint64_t position) {
  uint64_t bits = (position + 1) * 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

std::string hexadecimal(uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

uint64_t hash_of(const torch::Tensor& tensor) {
  const torch::Tensor bytes = tensor.detach().cpu().contiguous();
  return std::hash<std::string_view>{}({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
}

record::TensorDigest print_of(const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  const double* value = values.data_ptr<double>();
  double squares = 0;
  std::array<double, kSketch> sums{};
  for (int64_t i = 0; i < values.numel(); ++i) {
    squares += value[i] * value[i];
    const uint64_t signs = mixed(static_cast<uint64_t>(i));
    for (std::size_t k = 0; k < kSketch; ++k) sums[k] += (signs >> k & 1U) != 0 ? value[i] : -value[i];
  }
  return {hexadecimal(hash_of(tensor)), std::sqrt(squares), {sums.begin(), sums.end()}};
}

}  // namespace ddprun::train
