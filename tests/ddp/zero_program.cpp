// A user's program with ZeroRedundancyOptimizer. The test starts it as ranks. The first argument says what it does; it
// prints what the test compares.
#include "ddprun/zero.hpp"

#include <malloc.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>

#include "ddprun/ddp.hpp"

namespace {

namespace optim = torch::optim;
using torch::Tensor;

struct Net : torch::nn::Module {
  explicit Net(int64_t width = 32) {
    for (int64_t outputs : {width, width, width, width, width, width, int64_t{3}}) {
      layers->push_back(torch::nn::Linear(width, outputs));
    }
    register_module("layers", layers);
    // Values that Python computes alike.
    const torch::NoGradGuard no_grad;
    double phase = 0;
    for (Tensor& parameter : parameters()) {
      const Tensor angle = torch::arange(parameter.numel(), torch::kFloat64) * 0.7 + phase++;
      parameter.copy_((angle.sin() * 0.2).view(parameter.sizes()));
    }
  }
  Tensor forward(Tensor x) {
    for (const auto& layer : *layers) x = torch::tanh(layer->as<torch::nn::Linear>()->forward(x));
    return x;
  }
  torch::nn::ModuleList layers;
};

Tensor inputs() {
  return (torch::arange(24 * 32, torch::kFloat64) * 0.3).cos().to(torch::kFloat32).view({24, 32});
}
Tensor targets() {
  return torch::arange(24).remainder(3);
}

// On the samples of this rank, or on all.
Tensor loss_of(Net& net, int rank = 0, int ranks = 1) {
  const auto part = [&](const Tensor& all) { return all.chunk(ranks)[static_cast<std::size_t>(rank)]; };
  return torch::nn::functional::cross_entropy(net.forward(part(inputs())), part(targets()));
}

// The bits of all parameters.
uint64_t hash_of(const std::vector<Tensor>& tensors) {
  uint64_t hash = 14695981039346656037U;
  for (const Tensor& tensor : tensors) {
    const Tensor bytes = tensor.detach().contiguous().view({-1}).view(torch::kUInt8);
    for (int64_t i = 0; i < bytes.numel(); ++i) hash = (hash ^ bytes.const_data_ptr<uint8_t>()[i]) * 1099511628211U;
  }
  return hash;
}

std::size_t bytes_of_state(optim::Optimizer& optimizer) {
  std::size_t bytes = 0;
  for (const auto& item : optimizer.state()) {
    if (auto* sgd = dynamic_cast<optim::SGDParamState*>(item.second.get())) bytes += sgd->momentum_buffer().nbytes();
    if (auto* adam = dynamic_cast<optim::AdamParamState*>(item.second.get())) bytes += 2 * adam->exp_avg().nbytes();
    if (auto* adamw = dynamic_cast<optim::AdamWParamState*>(item.second.get())) bytes += 2 * adamw->exp_avg().nbytes();
    if (auto* adagrad = dynamic_cast<optim::AdagradParamState*>(item.second.get())) bytes += adagrad->sum().nbytes();
    if (auto* rms = dynamic_cast<optim::RMSpropParamState*>(item.second.get())) bytes += rms->square_avg().nbytes();
  }
  return bytes;
}

void set_rate(optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

// Six steps; the learning rate changes after three.
void train(const ddprun::Group& group, Net& net, optim::Optimizer& optimizer) {
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    loss_of(net, group.rank(), group.size()).backward();
    if (step == 3) set_rate(optimizer, 0.002);
    optimizer.step();
  }
}

template <class OptimizerClass, class Options>
void compare(const ddprun::Group& group, const char* name, const Options& options) {
  Net plain_net, zero_net;
  const ddprun::DistributedDataParallel plain_ddp(plain_net, group), zero_ddp(zero_net, group);
  OptimizerClass plain(plain_net.parameters(), options);
  ddprun::ZeroRedundancyOptimizer<OptimizerClass> zero(zero_net.parameters(), options, group);
  train(group, plain_net, plain);
  train(group, zero_net, zero);
  std::printf("%s: %s %016" PRIx64 " state %zu of %zu\n", name,
              hash_of(zero_net.parameters()) == hash_of(plain_net.parameters()) ? "equal" : "different",
              hash_of(zero_net.parameters()), bytes_of_state(zero), bytes_of_state(plain));
}

// Calls `act` with the name, the options and the class of each optimizer that treats each parameter on its own.
template <class Act>
void with_each_optimizer(const Act& act) {
  act.template operator()<optim::Adam>("adam", optim::AdamOptions(0.01).weight_decay(0.1).amsgrad(true));
  act.template operator()<optim::AdamW>("adamw", optim::AdamWOptions(0.01));
  act.template operator()<optim::SGD>("sgd", optim::SGDOptions(0.01).momentum(0.9).nesterov(true));
  act.template operator()<optim::Adagrad>("adagrad", optim::AdagradOptions(0.01).initial_accumulator_value(0.1));
  act.template operator()<optim::RMSprop>("rmsprop", optim::RMSpropOptions(0.001).momentum(0.9).centered(true));
}

void same(const ddprun::Group& group) {
  with_each_optimizer([&]<class OptimizerClass>(const char* name, const auto& options) {
    compare<OptimizerClass>(group, name, options);
  });
}

void copy_parameters(const Net& from, const Net& to) {
  const torch::NoGradGuard no_grad;
  const auto source = from.parameters();
  auto target = to.parameters();
  for (std::size_t i = 0; i < source.size(); ++i) target[i].copy_(source[i]);
}

// Steps on all samples, so that any number of ranks computes the same. Returns the bits of the weights.
uint64_t three_steps(Net& net, optim::Optimizer& optimizer) {
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(net).backward();
    optimizer.step();
  }
  return hash_of(net.parameters());
}

// Each optimizer continues from the state that it has saved: as ZeRO and without.
void reload(const ddprun::Group& group, const std::string& folder) {
  with_each_optimizer([&]<class OptimizerClass>(const char* name, const auto& options) {
    using Zero = ddprun::ZeroRedundancyOptimizer<OptimizerClass>;
    Net net, zero_net, plain_net;
    Zero first(net.parameters(), options, group), zero(zero_net.parameters(), options, group);
    OptimizerClass plain(plain_net.parameters(), options);
    three_steps(net, first);
    copy_parameters(net, zero_net);
    copy_parameters(net, plain_net);
    const std::string file = folder + "/" + name;
    first.consolidate_state_dict(0);
    if (group.rank() == 0) torch::save(first, file);
    group.barrier();
    torch::load(zero, file);
    torch::load(plain, file);
    const uint64_t hash = three_steps(net, first);
    std::printf("%s: zero %s, plain %s\n", name, three_steps(zero_net, zero) == hash ? "equal" : "different",
                three_steps(plain_net, plain) == hash ? "equal" : "different");
  });
}

// The module changes between two steps; `change` gets the list of parameters of the optimizer too.
void change(const ddprun::Group& group, const std::function<void(Net&, std::vector<Tensor>&)>& change) {
  const auto train_with_change = [&](Net& net, optim::Optimizer& optimizer) {
    three_steps(net, optimizer);
    change(net, optimizer.param_groups()[0].params());
    for (Tensor& parameter : optimizer.param_groups()[0].params()) {
      parameter.mutable_grad() = torch::full_like(parameter, 0.1);
    }
    optimizer.step();
    return hash_of(net.parameters());
  };
  Net plain_net, zero_net;
  optim::Adam plain(plain_net.parameters(), 0.01);
  ddprun::ZeroRedundancyOptimizer<optim::Adam> zero(zero_net.parameters(), 0.01, group);
  const bool equal = train_with_change(zero_net, zero) == train_with_change(plain_net, plain);
  std::printf("changed: %s\n", equal ? "equal" : "different");
}

void load_module(Net& net) {
  std::stringstream file;
  torch::save(net.layers, file);
  for (Tensor& parameter : net.parameters()) parameter.data().mul_(2);
  torch::load(net.layers, file);
}

// Parameters of several dtypes, sizes, layouts and groups; one is frozen, one gets no gradient, and one is added later.
void kinds(const ddprun::Group& group) {
  const auto make = [] {
    torch::manual_seed(1);
    std::vector<Tensor> list = {torch::randn({600, 500}),
                                torch::randn({7}, torch::kFloat64),
                                torch::randn({}),
                                torch::randn({33, 5}).to(torch::kBFloat16),
                                torch::randn({0, 4}),
                                torch::randn({9}),
                                torch::randn({4, 3, 5, 5}).contiguous(torch::MemoryFormat::ChannelsLast),
                                torch::randn({12}),
                                torch::randn({5})};
    for (Tensor& tensor : list) tensor.set_requires_grad(true);
    list[5].set_requires_grad(false);
    return list;
  };
  const auto train = [&](std::vector<Tensor>& list, const std::function<std::unique_ptr<optim::Optimizer>(
                                                        std::vector<optim::OptimizerParamGroup>)>& make_optimizer) {
    const auto last = list.end() - 1;
    const auto optimizer =
        make_optimizer({std::vector<Tensor>(list.begin(), list.begin() + 3),
                        {std::vector<Tensor>(list.begin() + 3, last), std::make_unique<optim::SGDOptions>(0.5)}});
    for (int step = 0; step < 4; ++step) {
      if (step == 2) optimizer->add_param_group(std::vector<Tensor>{*last});
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (i == 5 || i == 7) continue;
        list[i].mutable_grad() = torch::full_like(list[i], 0.25 * step + 0.1 * static_cast<double>(i));
      }
      int calls = 0;
      const Tensor loss = optimizer->step([&] {
        ++calls;
        return torch::full({}, 2.5);
      });
      if (calls != 1 || loss.item<double>() != 2.5) std::printf("the closure was called %d times\n", calls);
    }
  };
  const auto options = optim::SGDOptions(0.1).momentum(0.9);
  auto plain = make(), zero = make();
  train(plain, [&](const auto& groups) { return std::make_unique<optim::SGD>(groups, options); });
  train(zero, [&](const auto& groups) {
    return std::make_unique<ddprun::ZeroRedundancyOptimizer<optim::SGD>>(groups, options, group);
  });
  std::printf("kinds: %s %016" PRIx64 "\n", hash_of(zero) == hash_of(plain) ? "equal" : "different", hash_of(zero));
}

// "PLAIN" uses the ordinary optimizer.
void resume(const ddprun::Group& group, const std::string& file, bool loads, bool plain, bool saves) {
  Net net;
  const optim::AdamOptions options(0.01);
  std::unique_ptr<optim::Optimizer> adam = std::make_unique<optim::Adam>(net.parameters(), options);
  auto zero = std::make_unique<ddprun::ZeroRedundancyOptimizer<optim::Adam>>(net.parameters(), options, group);
  auto* const sharded = zero.get();
  if (!plain) adam = std::move(zero);
  if (loads) {
    std::vector<Tensor> weights;
    torch::load(weights, file + ".net");
    const torch::NoGradGuard no_grad;
    auto parameters = net.parameters();
    for (std::size_t i = 0; i < weights.size(); ++i) parameters[i].copy_(weights[i]);
    torch::load(*adam, file);
  }
  three_steps(net, *adam);
  if (!loads) set_rate(*adam, 0.02);
  if (saves) {
    if (!plain) sharded->consolidate_state_dict(0);
    if (group.rank() == 0) {
      torch::save(net.parameters(), file + ".net");
      torch::save(*adam, file);
    }
  }
  if (!loads) three_steps(net, *adam);
  std::printf("weights %016" PRIx64 " state %zu\n", hash_of(net.parameters()), bytes_of_state(*adam));
}

// Owners and weights for the comparison with PyTorch.
template <class OptimizerClass, class Options>
void parity(const ddprun::Group& group, const char* file, const Options& options) {
  Net net;
  const ddprun::DistributedDataParallel ddp(net, group);
  ddprun::ZeroRedundancyOptimizer<OptimizerClass> zero(net.parameters(), options, group);
  train(group, net, zero);
  if (group.rank() != 0) return;
  for (const Tensor& parameter : net.parameters()) std::printf("%d ", zero.owner(parameter));
  std::ofstream out(file, std::ios::binary);
  for (const Tensor& parameter : net.parameters()) {
    out.write(static_cast<const char*>(parameter.const_data_ptr()), static_cast<std::streamsize>(parameter.nbytes()));
  }
}

int64_t resident_kib() {
  ::malloc_trim(0);  // temporary tensors
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

// The memory that Adam adds to a process: a model of 74 MiB.
void memory(const ddprun::Group& group, bool sharded) {
  Net net(1800);
  std::unique_ptr<optim::Optimizer> adam;
  const optim::AdamOptions options(1e-3);
  if (sharded) {
    adam = std::make_unique<ddprun::ZeroRedundancyOptimizer<optim::Adam>>(net.parameters(), options, group);
  } else {
    adam = std::make_unique<optim::Adam>(net.parameters(), options);
  }
  std::size_t parameters = 0;
  for (Tensor& parameter : net.parameters()) {
    parameter.mutable_grad() = torch::full_like(parameter, 0.1);
    parameters += parameter.nbytes();
  }
  group.barrier();
  const int64_t before = resident_kib();
  for (int step = 0; step < 3; ++step) adam->step();
  constexpr double kMiB = 1 << 20;
  std::printf("%s, rank %d of %d: parameters %.1f MiB, state %.1f MiB, the process grew by %.1f MiB\n",
              sharded ? "zero" : "adam", group.rank(), group.size(), static_cast<double>(parameters) / kMiB,
              static_cast<double>(bytes_of_state(*adam)) / kMiB, static_cast<double>(resident_kib() - before) / 1024);
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < 10; ++step) adam->step();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%s, rank %d of %d: %.1f ms a step\n", sharded ? "zero" : "adam", group.rank(), group.size(),
              taken.count() / 10);
}

using Arguments = char**;
const std::map<std::string, std::function<void(const ddprun::Group&, Arguments)>> kActs = {
    {"same", [](const auto& group, Arguments) { same(group); }},
    {"kinds", [](const auto& group, Arguments) { kinds(group); }},
    {"reload", [](const auto& group, Arguments more) { reload(group, more[0]); }},
    {"load_module", [](const auto& group, Arguments) { change(group, [](auto& net, auto&) { load_module(net); }); }},
    {"retype", [](const auto& group, Arguments) { change(group, [](auto& net, auto&) { net.to(torch::kFloat64); }); }},
    {"transpose",
     [](const auto& group, Arguments) {
       change(group, [&](auto& net, auto&) {
         if (group.rank() != 0) return;
         Tensor weight = net.parameters()[2];
         weight.set_data(weight.detach().t().contiguous().t());
       });
     }},
    {"replace",
     [](const auto& group, Arguments) {
       change(group, [](auto&, auto& parameters) { parameters[3] = parameters[3].detach().clone().requires_grad_(); });
     }},
    {"save", [](const auto& group, Arguments more) { resume(group, more[0], false, false, true); }},
    {"save_plain", [](const auto& group, Arguments more) { resume(group, more[0], false, true, true); }},
    {"load", [](const auto& group, Arguments more) { resume(group, more[0], true, false, false); }},
    {"load_plain", [](const auto& group, Arguments more) { resume(group, more[0], true, true, false); }},
    {"parity_adam",
     [](const auto& group, Arguments more) { parity<optim::Adam>(group, more[0], optim::AdamOptions(0.01)); }},
    {"parity_sgd", [](const auto& group,
                      Arguments more) { parity<optim::SGD>(group, more[0], optim::SGDOptions(0.01).momentum(0.9)); }},
    {"memory", [](const auto& group, Arguments) { memory(group, false); }},
    {"memory_zero", [](const auto& group, Arguments) { memory(group, true); }},
    {"lists",
     [](const auto& group, Arguments) {
       const Net net(32 + group.rank());
       const ddprun::ZeroRedundancyOptimizer<optim::Adam> zero(net.parameters(), 0.1, group);
     }},
    {"layouts",
     [](const auto& group, Arguments) {
       Tensor weight = torch::zeros({3, 4});
       if (group.rank() == 1) weight = torch::zeros({4, 3}).t();
       const ddprun::ZeroRedundancyOptimizer<optim::Adam> zero({weight}, 0.1, group);
     }},
    {"gaps",
     [](const auto& group, Arguments) {
       const ddprun::ZeroRedundancyOptimizer<optim::Adam> zero({torch::zeros({3, 4}).narrow(1, 0, 2)}, 0.1, group);
     }},
    {"unconsolidated",
     [](const auto& group, Arguments) {
       const Net net;
       const ddprun::ZeroRedundancyOptimizer<optim::Adam> zero(net.parameters(), 0.1, group);
       torch::serialize::OutputArchive archive;
       zero.save(archive);
     }},
    {"nowhere",
     [](const auto& group, Arguments) {
       const Net net;
       ddprun::ZeroRedundancyOptimizer<optim::Adam>(net.parameters(), 0.1, group).consolidate_state_dict(2);
     }},
};

}  // namespace

int main(int, char** arguments) {
  const ddprun::Group group = ddprun::init({.exit_on_error = true});
  kActs.at(arguments[1])(group, arguments + 2);
}
