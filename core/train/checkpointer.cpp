#include "train/checkpointer.hpp"

#include "base/error.hpp"
#include "train/parameters.hpp"

namespace ddprun::train {
namespace {

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

class ModelCheckpointer final : public Checkpointer {
 public:
  ModelCheckpointer(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder,
                    checkpoint::Metadata metadata)
      : module_(module), folder_(folder), metadata_(std::move(metadata)) {}

  void save(int64_t step, int64_t epoch) override {
    std::vector<torch::Tensor> kept;  // contiguous copies, where a tensor is not
    std::vector<checkpoint::TensorView> views;
    for (const NamedTensor& item : state(module_)) {
      kept.push_back(item.tensor.detach().cpu().contiguous());
      const torch::Tensor& tensor = kept.back();
      views.push_back({item.name, safetensors_dtype(tensor), tensor.sizes().vec(), tensor.data_ptr(), tensor.nbytes()});
    }
    folder_.save(step, epoch, views, metadata_);
  }

 private:
  const torch::nn::Module& module_;
  checkpoint::CheckpointFolder& folder_;
  const checkpoint::Metadata metadata_;
};

}  // namespace

std::unique_ptr<Checkpointer> model_checkpointer(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder,
                                                 checkpoint::Metadata metadata) {
  return std::make_unique<ModelCheckpointer>(module, folder, std::move(metadata));
}

}  // namespace ddprun::train
