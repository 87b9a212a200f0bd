// The library on GPUs: trains each case on a GPU and on the CPU, from the same weights with the same samples, and
// compares all parameters and buffers. Rank 0 prints one line per case. Exit code 1: one differs too much.
// argv: BACKEND DEVICES [KEY=VALUE...]. DEVICES: the GPU index of each local rank, as 0,0. The options are the
// backend's.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ddp/library_models.hpp"
#include "ddp_powersgd/power_sgd.hpp"
#include "ddprun/amp.hpp"
#include "ddprun/comm_hooks.hpp"
#include "ddprun/ddp.hpp"
#include "ddprun/sync_batch_norm.hpp"
#include "ddprun/zero.hpp"

namespace parity {
namespace {

constexpr int64_t kSamples = 128, kBatch = 4;

struct Case {
  std::string name, model = "simplenet";
  ddprun::DistributedDataParallelOptions ddp{.bucket_cap_mb = 0.02};
  std::function<ddprun::CommHook()> hook = nullptr;  // makes one: PowerSGD's has a state
  int64_t parts = 1;
  bool joins = false, sync_batch_norm = false, zero = false, channels_last = false;
  std::optional<torch::Dtype> amp = std::nullopt;
  // Of the difference between GPU and CPU, relative to how far the training moved the weights. GPUs add in another
  // order; a batch norm amplifies that.
  double tolerance = 1e-3;
};

std::vector<Case> cases() {
  return {
      {.name = "simplenet"},
      {.name = "resnet", .model = "resnet", .tolerance = 0.02},
      {.name = "transformer", .model = "transformer"},
      {.name = "no_sync", .parts = 2},
      {.name = "unused", .model = "partly", .ddp = {.bucket_cap_mb = 0.02, .find_unused_parameters = true}},
      {.name = "static graph", .model = "checkpointed", .ddp = {.bucket_cap_mb = 0.02, .static_graph = true}},
      {.name = "join", .joins = true},
      {.name = "sync batch norm", .model = "resnet", .sync_batch_norm = true, .tolerance = 0.02},
      {.name = "the same, NHWC", .model = "resnet", .sync_batch_norm = true, .channels_last = true, .tolerance = 0.02},
      // Adam's first steps have the size 1, however small a gradient.
      {.name = "zero", .zero = true, .tolerance = 0.02},
      {.name = "fp16 hook", .hook = ddprun::fp16_compress_hook, .tolerance = 0.01},
      {.name = "bf16 hook", .hook = ddprun::bf16_compress_hook, .tolerance = 0.02},
      {.name = "PowerSGD",
       .ddp = {},
       .hook = [] { return power_sgd_hook({.start_iter = 2, .min_compression_rate = 0.5}); },
       .tolerance = 0.02},
      {.name = "bf16", .amp = torch::kBFloat16, .tolerance = 0.05},
      {.name = "fp16", .amp = torch::kFloat16, .tolerance = 0.05},
  };
}

struct Data {
  Data(const std::string& model, torch::Device device) {
    torch::manual_seed(7);
    if (model == "transformer") {
      const Tensor tokens = torch::randint(64, {kSamples, 17});
      inputs = {tokens.narrow(1, 0, 16), torch::arange(16).expand({kSamples, 16})};
      targets = tokens.narrow(1, 1, 16);
    } else {
      const Tensor images = torch::randn({kSamples, 3, 32, 32});
      inputs = {model == "resnet" ? images : images.flatten(1).narrow(1, 0, 784)};
      targets = torch::arange(kSamples).remainder(10);
    }
    for (Tensor& input : inputs) input = input.to(device);
    targets = targets.to(device);
  }
  std::vector<Tensor> inputs;
  Tensor targets;
};

// On the CPU. Without the counters of batch norms, which would outweigh the rest.
Tensor state_of(const Model& model) {
  std::vector<Tensor> flat;
  for (const Tensor& tensor : model.parameters()) flat.push_back(tensor.detach().flatten().cpu());
  for (const Tensor& tensor : model.buffers()) {
    if (tensor.is_floating_point()) flat.push_back(tensor.flatten().cpu());
  }
  return torch::cat(flat);
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Case& one, const Model& model, const ddprun::Group& group) {
  if (one.zero) {
    return std::make_unique<ddprun::ZeroRedundancyOptimizer<torch::optim::Adam>>(
        model.parameters(), torch::optim::AdamOptions(1e-3), group);
  }
  return std::make_unique<torch::optim::SGD>(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
}

struct Trained {
  Tensor before, after;
};

Trained train(const Case& one, const ddprun::Group& group, torch::Device device) {
  torch::manual_seed(3);
  const auto model = make_model(one.model, group.rank());
  const Tensor before = state_of(*model);
  model->to(device);
  if (one.channels_last) {
    for (Tensor& weight : model->parameters()) {
      if (weight.dim() == 4) weight.set_data(weight.contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }
  if (one.sync_batch_norm) ddprun::convert_sync_batchnorm(*model, group);
  ddprun::DistributedDataParallel ddp(*model, group, one.ddp);
  if (one.hook) ddp.register_comm_hook(one.hook());
  const auto optimizer = optimizer_of(one, *model, group);
  ddprun::GradScaler scaler(device, {.enabled = one.amp == torch::kFloat16});
  const Data data(one.model, device);

  const auto backward = [&](int64_t batch) {
    Tensor loss;
    {
      const ddprun::Autocast autocast(device.type(), one.amp, one.amp.has_value());
      loss = loss_of(*model, data.inputs, data.targets, (batch * group.size() + group.rank()) % (kSamples / kBatch),
                     kBatch);
    }
    scaler.scale(loss).backward();
  };
  const auto loop = [&] {
    const int64_t steps = one.joins ? 3 + group.rank() : 5;
    for (int64_t step = 0; step < steps; ++step) {
      optimizer->zero_grad();
      for (int64_t part = 0; part + 1 < one.parts; ++part) {
        const auto held = ddp.no_sync();
        backward(step * one.parts + part);
      }
      backward((step + 1) * one.parts - 1);
      scaler.step(*optimizer);
      scaler.update();
    }
  };
  if (one.joins) {
    ddp.join(loop);
  } else {
    loop();
  }
  return {before, state_of(*model)};
}

// Every collective of a group; the results are integers, so they are exact.
Tensor collectives(const ddprun::Group& group, torch::Device device) {
  const auto filled = [&](double value) { return torch::full({1001}, value, torch::device(device)); };
  const double rank = group.rank() + 1;
  Tensor sum = filled(rank), largest = filled(rank), first = filled(rank), half = filled(rank).to(torch::kBFloat16);
  group.allreduce(sum);
  group.allreduce(largest, ddprun::Op::max);
  group.allreduce(half);
  group.broadcast(first, group.size() - 1);
  std::vector<Tensor> all = group.all_gather(filled(rank));
  for (const Tensor& one : {sum, largest, first, half}) all.push_back(one.to(torch::kFloat32));
  all.push_back(group.reduce_scatter(torch::arange(4.0 * group.size(), torch::device(device))));
  group.barrier();
  group.monitored_barrier();
  return torch::cat(all).cpu();
}

bool report(const ddprun::Group& group, const std::string& name, double difference, double tolerance) {
  const bool good = difference <= tolerance;
  if (group.rank() == 0 || !good) {
    std::printf("%-16s %.1e, at most %.0e: %s\n", name.c_str(), difference, tolerance, good ? "ok" : "FAILED");
  }
  return good;
}

bool compare(const ddprun::Group& gpu, torch::Device device, const ddprun::Group& cpu) {
  bool good = report(gpu, "collectives",
                     (collectives(gpu, device) - collectives(cpu, torch::kCPU)).abs().max().item<double>(), 0);
  for (const Case& one : cases()) {
    if (one.sync_batch_norm && std::getenv("DDPRUN_FAKE_GPUS") != nullptr) {
      if (gpu.rank() == 0)
        std::printf("%s: skipped, a fake GPU has no kernel for its backward pass\n", one.name.c_str());
      continue;
    }
    const Trained there = train(one, gpu, device), here = train(one, cpu, torch::kCPU);
    const Tensor moved = (here.after - here.before).norm();
    good &= report(gpu, one.name, ((there.after - here.after).norm() / moved).item<double>(), one.tolerance);
  }
  return good;
}

torch::Device device_of(const std::string& devices) {
  const char* const local_rank = std::getenv("LOCAL_RANK");
  std::istringstream list(devices);
  std::string index;
  for (int left = local_rank == nullptr ? 0 : std::atoi(local_rank); left >= 0; --left) std::getline(list, index, ',');
  return torch::Device("cuda:" + index);
}

}  // namespace
}  // namespace parity

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: gpu_program BACKEND DEVICES [KEY=VALUE...]\n");
    return 2;
  }
  ddprun::GroupOptions options;
  options.backend = arguments[1];
  options.exit_on_error = true;
  options.device = parity::device_of(arguments[2]);
  for (int i = 3; i < count; ++i) {
    const std::string option = arguments[i];
    options.options[option.substr(0, option.find('='))] = option.substr(option.find('=') + 1);
  }
  const ddprun::Group gpu = ddprun::init(options);
  // The CPU multiplies in float32, so the GPU must not use TF32.
  at::globalContext().setAllowTF32CuDNN(false);
  const ddprun::Group cpu = *gpu.split(0, gpu.rank(), ddprun::GroupOptions{.backend = "gloo"});
  return parity::compare(gpu, options.device, cpu) ? 0 : 1;
}
