// The cases of library_parity.py with the library: trains each and writes its parameters.
// argv: FOLDER CASE..., where a CASE is KEY=VALUE,KEY=VALUE...
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ddp/library_models.hpp"
#include "ddp_powersgd/power_sgd.hpp"
#include "ddprun/ddp.hpp"

namespace parity {
namespace {

constexpr int64_t kSamples = 128, kBatch = 4;

class Case {
 public:
  explicit Case(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
      const std::size_t equal = word.find('=');
      values_[word.substr(0, equal)] = word.substr(equal + 1);
    }
  }
  std::string operator[](const std::string& key) const { return values_.at(key); }
  double number(const std::string& key) const { return std::stod(values_.at(key)); }
  bool flag(const std::string& key) const { return values_.at(key) == "True"; }

 private:
  std::map<std::string, std::string> values_;
};

Tensor read(const std::string& path, at::IntArrayRef shape) {
  return torch::from_file(path, false, c10::multiply_integers(shape), torch::kFloat32).clone().view(shape);
}

struct Data {
  explicit Data(const std::string& folder, const std::string& model) {
    if (model == "transformer") {
      inputs = {read(folder + "/tokens", {kSamples, 16}).to(torch::kInt64), torch::arange(16).expand({kSamples, 16})};
      targets = read(folder + "/next", {kSamples, 16}).to(torch::kInt64);
      return;
    }
    const Tensor images = read(folder + "/images", {kSamples, 3, 32, 32});
    inputs = {model == "resnet" ? images : images.flatten(1).narrow(1, 0, 784)};
    targets = torch::arange(kSamples).remainder(10);
  }
  std::vector<Tensor> inputs;
  Tensor targets;
};

// The other ranks get them from rank 0.
void load(Model& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  int64_t count = 0, at = 0;
  for (const Tensor& parameter : model.parameters()) count += parameter.numel();
  const Tensor flat = read(path, {count});
  for (Tensor& parameter : model.parameters()) {
    parameter.copy_(flat.narrow(0, at, parameter.numel()).view(parameter.sizes()));
    at += parameter.numel();
  }
}

void save(const Model& model, const std::string& path, bool with_buffers) {
  std::vector<Tensor> flat;
  for (const Tensor& tensor : model.parameters()) flat.push_back(tensor.detach().flatten());
  for (const Tensor& tensor : model.buffers()) {
    if (with_buffers) flat.push_back(tensor.to(torch::kFloat32).flatten());
  }
  const Tensor all = torch::cat(flat);
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(all.const_data_ptr()), static_cast<std::streamsize>(all.nbytes()));
}

ddprun::CommHook hook_of(const Case& one) {
  if (one["hook"] == "fp16") return ddprun::fp16_compress_hook();
  if (one["hook"] == "bf16") return ddprun::bf16_compress_hook();
  return power_sgd_hook({.matrix_approximation_rank = std::stol(one["rank"]),
                         .start_iter = 2,
                         .min_compression_rate = one.number("min_rate"),
                         .use_error_feedback = one.flag("feedback"),
                         .warm_start = one.flag("warm_start")});
}

void train(const ddprun::Group& group, const Case& one, const std::string& folder) {
  const auto model = make_model(one["model"], group.rank());
  if (group.rank() == 0) load(*model, folder + "/" + one["model"]);
  ddprun::DistributedDataParallel ddp(*model, group,
                                      {.bucket_cap_mb = one.number("cap"),
                                       .find_unused_parameters = one.flag("find_unused"),
                                       .static_graph = one.flag("static_graph")});
  if (one["hook"] != "None") ddp.register_comm_hook(hook_of(one));
  torch::optim::SGD sgd(
      model->parameters(),
      torch::optim::SGDOptions(one.number("lr")).momentum(0.9).weight_decay(one.number("weight_decay")));
  const Data data(folder, one["model"]);
  const bool joins = one["join"] != "None";
  const int64_t steps = joins ? 3 + group.rank() : 5, parts = std::stol(one["parts"]);
  const auto loop = [&] {
    for (int64_t step = 0; step < steps; ++step) {
      sgd.zero_grad();
      const auto loss = [&](int64_t part) {
        return loss_of(*model, data.inputs, data.targets, (step * parts + part) * group.size() + group.rank(), kBatch);
      };
      for (int64_t part = 0; part + 1 < parts; ++part) {
        const auto held = ddp.no_sync();
        loss(part).backward();
      }
      loss(parts - 1).backward();
      sgd.step();
    }
  };
  if (joins) {
    ddp.join(loop, {.divide_by_initial_world_size = one["join"] == "initial"});
  } else {
    loop();
  }
  save(*model, folder + "/" + one["name"] + "-" + std::to_string(group.rank()), group.rank() == 0);
}

}  // namespace
}  // namespace parity

int main(int count, char** arguments) {
  // Gloo in PyTorch adds in this order.
  ddprun::GroupOptions options;
  options.algorithm = "ring";
  options.exit_on_error = true;
  const ddprun::Group group = ddprun::init(options);
  for (int i = 2; i < count; ++i) parity::train(group, parity::Case(arguments[i]), arguments[1]);
}
