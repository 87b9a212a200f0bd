#include "train/checkpointer.hpp"

#include "train/parameters.hpp"
#include "train/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

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
