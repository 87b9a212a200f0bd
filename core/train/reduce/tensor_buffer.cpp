#include "train/reduce/tensor_buffer.hpp"

#include "ddprun/error.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

DType dtype_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
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
                  std::string("a tensor of type ") + c10::toString(tensor.scalar_type()) + " cannot be communicated");
  }
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
    throw Error(ExitCode::failure, "only a contiguous tensor on the CPU or on a GPU can be communicated");
  }
  Collective call{.send = tensor.data_ptr(),
                  .recv = tensor.data_ptr(),
                  .count = static_cast<std::size_t>(tensor.numel()),
                  .dtype = dtype_of(tensor)};
  if (tensor.is_cuda()) {
    call.memory = Memory::cuda;
    call.stream = handle(current_stream(tensor.device()));
  }
  return call;
}

}  // namespace ddprun::train
