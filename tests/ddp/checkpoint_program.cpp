// A user's program that saves and loads checkpoints. The test starts it as ranks: ACT PATH.
#include "ddprun/checkpoint.hpp"

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "ddprun/ddp.hpp"
#include "ddprun/error.hpp"
#include "ddprun/zero.hpp"

namespace {

using torch::Tensor;

struct Net : torch::nn::Module {
  explicit Net(uint64_t seed, int64_t hidden = 8) {
    torch::manual_seed(seed);
    first = register_module("first", torch::nn::Linear(4, hidden));
    norm = register_module("norm", torch::nn::BatchNorm1d(hidden));
    second = register_module("second", torch::nn::Linear(hidden, 3));
    register_buffer("mask", torch::tensor({0.0F, -std::numeric_limits<float>::infinity()}));
  }
  Tensor forward(const Tensor& input) { return second->forward(torch::relu(norm->forward(first->forward(input)))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

torch::optim::Adam adam_of(Net& net) {
  return torch::optim::Adam(net.parameters(), torch::optim::AdamOptions(0.01).amsgrad(true));
}

// Adam on all ranks, or ZeRO's.
std::unique_ptr<torch::optim::Optimizer> optimizer_of(Net& net, const ddprun::Group& group, bool zero) {
  if (!zero) return std::make_unique<torch::optim::Adam>(adam_of(net));
  return std::make_unique<ddprun::ZeroRedundancyOptimizer<torch::optim::Adam>>(
      net.parameters(), torch::optim::AdamOptions(0.01).amsgrad(true), group);
}

void train(Net& net, torch::optim::Optimizer& optimizer, const ddprun::Group& group, int first, int last) {
  ddprun::DistributedDataParallel ddp(net, group);
  for (int step = first; step < last; ++step) {
    torch::manual_seed(static_cast<uint64_t>(100 * step + group.rank()));
    optimizer.zero_grad();
    net.forward(torch::randn({6, 4})).square().mean().backward();
    optimizer.step();
  }
}

// All values, exactly.
void print_state(const ddprun::Group& group, const torch::nn::Module& module) {
  std::string line = "rank " + std::to_string(group.rank()) + ":";
  const auto add = [&](const auto& item) {
    line += " " + item.key();
    const Tensor values = item.value().detach().to(torch::kFloat64).reshape({-1});
    for (int64_t i = 0; i < values.numel(); ++i) {
      char text[40];
      std::snprintf(text, sizeof text, " %a", values[i].item<double>());
      line += text;
    }
  };
  for (const auto& item : module.named_parameters()) add(item);
  for (const auto& item : module.named_buffers()) add(item);
  std::printf("%s\n", line.c_str());
}

// Six steps, with a checkpoint after three.
void save(const ddprun::Group& group, const std::string& path, bool zero) {
  Net net(1);
  const auto made = optimizer_of(net, group, zero);
  torch::optim::Optimizer& adam = *made;
  train(net, adam, group, 0, 3);
  adam.param_groups()[0].options().set_lr(0.005);
  ddprun::save_checkpoint(path, net, adam, group, {{"epoch", 2}, {"best", 0.1}});
  train(net, adam, group, 3, 6);
  print_state(group, net);
}

// Only rank 0 knows the path.
void resume(const ddprun::Group& group, const std::string& path, bool zero) {
  Net net(static_cast<uint64_t>(7 + group.rank()));
  const auto made = optimizer_of(net, group, zero);
  torch::optim::Optimizer& adam = *made;
  const auto numbers = ddprun::load_checkpoint(group.rank() == 0 ? path : "/nowhere", net, adam, group);
  TORCH_CHECK(numbers == (ddprun::CheckpointNumbers{{"epoch", 2}, {"best", 0.1}}), "other numbers");
  train(net, adam, group, 3, 6);
  print_state(group, net);
}

void save_weights(const ddprun::Group& group, const std::string& path) {
  Net net(1);
  ddprun::save_checkpoint(path, net, group, {{"step", 12}});
  print_state(group, net);
}

void load_weights(const ddprun::Group& group, const std::string& path) {
  Net net(2);
  for (const auto& [name, value] : ddprun::load_checkpoint(path, net, group)) {
    if (group.rank() == 0) std::printf("%s = %g\n", name.c_str(), value);
  }
  print_state(group, net);
}

// Each rank reports the error that it catches, and that its weights are as they were.
void report(const ddprun::Group& group, const torch::nn::Module& net, const std::function<void()>& work) {
  const Tensor before = torch::cat({net.parameters()[0].detach().reshape({-1}), net.parameters()[1].detach()});
  try {
    work();
    std::printf("rank %d: no error\n", group.rank());
  } catch (const ddprun::Error& error) {
    const Tensor now = torch::cat({net.parameters()[0].detach().reshape({-1}), net.parameters()[1].detach()});
    std::printf("rank %d: %d%s: %s\n", group.rank(), static_cast<int>(error.code()),
                torch::equal(before, now) ? "" : " CHANGED", error.what());
  }
  group.barrier();  // the group is still of use
}

using Optim = torch::optim::Optimizer;
const std::map<std::string, std::function<std::unique_ptr<Optim>(std::vector<Tensor>)>> kOptimizers = {
    {"rmsprop",
     [](auto all) {
       return std::make_unique<torch::optim::RMSprop>(std::move(all),
                                                      torch::optim::RMSpropOptions(0.01).momentum(0.9).centered(true));
     }},
    {"rmsprop_plain", [](auto all) { return std::make_unique<torch::optim::RMSprop>(std::move(all)); }},
    {"adagrad", [](auto all) { return std::make_unique<torch::optim::Adagrad>(std::move(all)); }},
};

void step_with(Net& net, Optim& optimizer, const ddprun::Group& group, int first, int last) {
  ddprun::DistributedDataParallel ddp(net, group);
  for (int step = first; step < last; ++step) {
    torch::manual_seed(static_cast<uint64_t>(100 * step + group.rank()));
    const Tensor input = torch::randn({6, 4});
    optimizer.zero_grad();
    net.forward(input).square().mean().backward();
    optimizer.step();
  }
}

// Saves after three of six steps with each optimizer, and repeats the last three in a new net.
void optimizers(const ddprun::Group& group, const std::string& path) {
  for (const auto& [name, make] : kOptimizers) {
    Net net(1), again(2);
    const auto optimizer = make(net.parameters()), second = make(again.parameters());
    step_with(net, *optimizer, group, 0, 3);
    ddprun::save_checkpoint(path, net, *optimizer, group);
    step_with(net, *optimizer, group, 3, 6);
    ddprun::load_checkpoint(path, again, *second, group);
    step_with(again, *second, group, 3, 6);
    for (std::size_t i = 0; i < net.parameters().size(); ++i) {
      if (torch::equal(net.parameters()[i], again.parameters()[i])) continue;
      std::printf("%s: parameter %zu differs\n", name.c_str(), i);
    }
    if (group.rank() == 0) std::printf("%s\n", name.c_str());
  }
}

const std::map<std::string, std::function<void(const ddprun::Group&, const std::string&)>> kActs = {
    {"optimizers", optimizers},
    {"save", [](const auto& group, const auto& path) { save(group, path, false); }},
    {"save_zero", [](const auto& group, const auto& path) { save(group, path, true); }},
    {"resume", [](const auto& group, const auto& path) { resume(group, path, false); }},
    {"resume_zero", [](const auto& group, const auto& path) { resume(group, path, true); }},
    {"save_weights", save_weights},
    {"load_weights", load_weights},
    {"load",
     [](const auto& group, const auto& path) {
       Net net(2);
       auto adam = adam_of(net);
       ddprun::load_checkpoint(path, net, adam, group);
     }},
    {"report_load",
     [](const auto& group, const auto& path) {
       Net net(2);
       auto adam = adam_of(net);
       report(group, net, [&] { ddprun::load_checkpoint(path, net, adam, group); });
     }},
    {"report_load_sgd",
     [](const auto& group, const auto& path) {
       Net net(2);
       torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
       report(group, net, [&] { ddprun::load_checkpoint(path, net, sgd, group); });
     }},
    {"report_load_other",  // the last rank has another module
     [](const auto& group, const auto& path) {
       Net net(2, group.rank() == group.size() - 1 ? 9 : 8);
       report(group, net, [&] { ddprun::load_checkpoint(path, net, group); });
     }},
    {"report_save",
     [](const auto& group, const auto& path) {
       Net net(2);
       report(group, net, [&] { ddprun::save_checkpoint(path, net, group); });
     }},
    {"report_save_full",  // rank 0's disk takes no more than 1000 bytes
     [](const auto& group, const auto& path) {
       Net net(2);
       std::signal(SIGXFSZ, SIG_IGN);
       const rlimit limit{1000, RLIM_INFINITY};
       if (group.rank() == 0) setrlimit(RLIMIT_FSIZE, &limit);
       report(group, net, [&] { ddprun::save_checkpoint(path, net, group); });
     }},
    {"report_foreign",
     [](const auto& group, const auto& path) {
       Net net(2), other(3);
       auto adam = adam_of(other);
       report(group, net, [&] { ddprun::save_checkpoint(path, net, adam, group); });
       report(group, net, [&] { ddprun::save_checkpoint(path, net, group, {{"optimizer.lr.0", 1}}); });
     }},
    {"die",  // rank 0 is killed while it saves again and again
     [](const auto& group, const auto& path) {
       Net net(2, 2000);
       for (int i = 0;; ++i) {
         ddprun::save_checkpoint(path, net, group, {{"i", i}});
         if (group.rank() == 0) std::printf("saved %d\n", i), std::fflush(stdout);
       }
     }},
};

}  // namespace

int main(int, char** arguments) {
  const ddprun::Group group = ddprun::init({.exit_on_error = true});
  kActs.at(arguments[1])(group, arguments[2]);
}
