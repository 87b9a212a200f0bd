#include "train/tensor/tensor_buffer.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/detail/mix.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

DType dtype_of(const torch::Tensor& tensor) {
  switch (c10::toRealValueType(tensor.scalar_type())) {
    case torch::kFloat16: return DType::float16;
    case torch::kBFloat16: return DType::bfloat16;
    case torch::kFloat32: return DType::float32;
    case torch::kFloat64: return DType::float64;
    case torch::kInt8: return DType::int8;
    case torch::kInt16: return DType::int16;
    case torch::kInt32: return DType::int32;
    case torch::kInt64: return DType::int64;
    case torch::kUInt8: return DType::uint8;
    default:
      throw Error(ExitCode::failure,
                  std::string("a tensor of type ") + c10::toString(tensor.scalar_type()) +
                      " cannot be communicated: convert it with to(), for example to uint8 or float32");
  }
}

std::size_t count_of(const torch::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * (tensor.is_complex() ? 2 : 1);
}

std::string safetensors_dtype(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat16: return "F16";
    case torch::kBFloat16: return "BF16";
    case torch::kFloat32: return "F32";
    case torch::kFloat64: return "F64";
    case torch::kInt64: return "I64";
    case torch::kInt32: return "I32";
    case torch::kInt16: return "I16";
    case torch::kInt8: return "I8";
    case torch::kUInt8: return "U8";
    case torch::kBool: return "BOOL";
    default:
      throw Error(ExitCode::failure, std::string("safetensors has no name for ") + c10::toString(tensor.scalar_type()));
  }
}

Collective in_place(const torch::Tensor& tensor) {
  if (!tensor.is_contiguous() || !(tensor.is_cpu() || tensor.is_cuda())) {
    throw Error(ExitCode::failure,
                "only a contiguous tensor on the CPU or on a GPU can be communicated: use tensor.contiguous()");
  }
  Collective call{
      .send = tensor.data_ptr(), .recv = tensor.data_ptr(), .count = count_of(tensor), .dtype = dtype_of(tensor)};
  if (tensor.is_cuda()) {
    call.memory = Memory::cuda;
    call.stream = handle(current_stream(tensor.device()));
  }
  return call;
}

Collective from_to(const torch::Tensor& send, const torch::Tensor& recv) {
  Collective call = in_place(send);
  call.recv = in_place(recv).recv;
  return call;
}

namespace {

constexpr std::size_t kSketch = 8;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;  // the step of SplitMix64

}  // namespace

uint64_t hash_of(const torch::Tensor& tensor) {
  const torch::Tensor bytes = tensor.detach().cpu().contiguous();
  return std::hash<std::string_view>{}({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
}

record::TensorDigest digest_of(const torch::Tensor& tensor) {
  const torch::Tensor parts =
      tensor.is_complex() ? torch::view_as_real(tensor.detach().resolve_conj()) : tensor.detach();
  const torch::Tensor values = parts.to(torch::kCPU, torch::kFloat64).contiguous();
  const double* value = values.data_ptr<double>();
  double squares = 0;
  std::array<double, kSketch> sums{};
  for (int64_t i = 0; i < values.numel(); ++i) {
    squares += value[i] * value[i];
    const uint64_t signs = mix(static_cast<uint64_t>(i) * kGolden);
    for (std::size_t k = 0; k < kSketch; ++k) sums[k] += (signs >> k & 1U) != 0 ? value[i] : -value[i];
  }
  return {hex(hash_of(tensor), 16), std::sqrt(squares), {sums.begin(), sums.end()}};
}

}  // namespace ddprun::train
