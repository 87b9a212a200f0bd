#include "train/reduce/tensor_buffer.hpp"

#include "base/error.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

comm::DType dtype_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat16: return comm::DType::float16;
    case torch::kBFloat16: return comm::DType::bfloat16;
    case torch::kFloat32: return comm::DType::float32;
    case torch::kFloat64: return comm::DType::float64;
    case torch::kInt8: return comm::DType::int8;
    case torch::kInt16: return comm::DType::int16;
    case torch::kInt32: return comm::DType::int32;
    case torch::kInt64: return comm::DType::int64;
    case torch::kUInt8: return comm::DType::uint8;
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

comm::Buffer as_buffer(const torch::Tensor& tensor) {
  if (!tensor.is_contiguous() || !(tensor.is_cpu() || tensor.is_cuda())) {
    throw Error(ExitCode::failure, "only a contiguous tensor on the CPU or on a GPU can be communicated");
  }
  comm::Buffer buffer{tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), dtype_of(tensor), comm::Memory::host,
                      nullptr};
  if (tensor.is_cuda()) {
    buffer.memory = comm::Memory::cuda;
    buffer.stream = handle(current_stream(tensor.device()));
  }
  return buffer;
}

}  // namespace ddprun::train
