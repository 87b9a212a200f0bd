// Modules that change under DistributedDataParallel, modules with common parameters, and complex ones.
#include <sstream>

#include "ddp/program.hpp"
#include "ddp_powersgd/power_sgd.hpp"
#include "support/torch_versions.hpp"

namespace program {
namespace {

void step(const ddprun::Group& group, Net& net, torch::Dtype dtype = torch::kFloat32) {
  net.zero_grad();
  loss_of(net, part_of(group, inputs()).to(dtype), part_of(group, targets())).backward();
}

// Two steps: the module changes in between. Prints the gradients of the second one.
void changed(const ddprun::Group& group, const std::function<void(Net&)>& change, torch::Dtype dtype = torch::kFloat32,
             bool find_unused = false) {
  torch::manual_seed(1);
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.find_unused_parameters = find_unused});
  step(group, net);
  change(net);
  step(group, net, dtype);
  double sum = 0, squares = 0;
  for (const Tensor& parameter : net.parameters()) {
    sum += parameter.grad().sum().item<double>();
    squares += parameter.grad().square().sum().item<double>();
  }
  std::printf("rank %d of %d: %.9f %.9f\n", group.rank(), group.size(), sum, squares);
}

// As torch::save and torch::load of a file.
template <class Module>
void load_saved(Module& module) {
  std::stringstream file;
  torch::save(module, file);
  torch::load(module, file);
}

void replace(Net& net, bool first, bool second) {
  if (first) net.first = net.replace_module("first", torch::nn::Linear(4, 8));
  if (second) net.second = net.replace_module("second", torch::nn::Linear(8, 3));
}

// A new layer in place of the last one is trained without a synchronized backward.
void replaced_in_no_sync(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  replace(net, false, true);
  const auto held = ddp.no_sync();
  step(group, net);
}

// Two models with the same first layer.
void common_layer(const ddprun::Group& group, bool as_view) {
  Net actor, critic;
  critic.first = critic.replace_module("first", actor.first);
  const ddprun::DistributedDataParallel of_actor(actor, group, {.gradient_as_bucket_view = as_view});
  const ddprun::DistributedDataParallel of_critic(critic, group, {.gradient_as_bucket_view = as_view});
}

// The same two as children of one module.
void common_parent(const ddprun::Group& group) {
  torch::manual_seed(1);
  struct Both : torch::nn::Module {
    Both() {
      critic->first = critic->replace_module("first", actor->first);
      register_module("actor", actor);
      register_module("critic", critic);
    }
    std::shared_ptr<Net> actor = std::make_shared<Net>(), critic = std::make_shared<Net>();
  } both;
  ddprun::DistributedDataParallel ddp(both, group);
  torch::optim::SGD sgd(both.parameters(), 0.1);
  for (int i = 0; i < 3; ++i) {
    sgd.zero_grad();
    const auto loss = [&](Net& net) { return loss_of(net, part_of(group, inputs()), part_of(group, targets())); };
    (loss(*both.actor) + loss(*both.critic)).backward();
    sgd.step();
  }
  print_state(group, both);
}

// One object after another has the module.
void constructed_again(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net net;
  for (const torch::Dtype dtype : {torch::kFloat32, torch::kFloat64}) {
    net.to(dtype);
    ddprun::DistributedDataParallel ddp(net, group);
    torch::optim::SGD sgd(net.parameters(), 0.1);
    step(group, net, dtype);
    sgd.step();
  }
  print_state(group, net);
}

// A buffer that is new: the ranks have different values.
void new_buffer(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  net.register_buffer("count", torch::full({1}, group.rank() + 5));
  step(group, net);
  std::printf("count %ld\n", net.named_buffers()["count"].item<int64_t>());
}

// The rotation of a Transformer's positions, as a parameter or as a buffer.
struct Rotating : torch::nn::Module {
  explicit Rotating(bool trained) {
    const Tensor angles = torch::polar(torch::ones({3}), torch::arange(3.0));
    linear = register_module("linear", torch::nn::Linear(4, 6));
    rotation = trained ? register_parameter("rotation", angles) : register_buffer("rotation", angles);
  }
  torch::nn::Linear linear{nullptr};
  Tensor rotation;
};

void complex(const ddprun::Group& group, bool trained, bool as_view, const ddprun::CommHook& hook) {
  torch::manual_seed(1);
  Rotating net(trained);
  ddprun::DistributedDataParallel ddp(net, group, {.gradient_as_bucket_view = as_view});
  if (hook) ddp.register_comm_hook(hook);
  torch::optim::SGD sgd(net.parameters(), 0.1);
  for (int i = 0; i < 5; ++i) {
    sgd.zero_grad();
    const Tensor pairs = torch::view_as_complex(net.linear->forward(part_of(group, inputs())).view({-1, 3, 2}));
    (torch::view_as_real(pairs * net.rotation) - 1).square().mean().backward();
    sgd.step();
  }
  const Tensor parts = torch::view_as_real(net.rotation.detach());
  std::printf("rank %d of %d: %.9f %.9f\n", group.rank(), group.size(),
              parts.sum().item<double>() + net.linear->weight.sum().item<double>(),
              parts.square().sum().item<double>());
}

void complex_collectives(const ddprun::Group& group) {
  const Tensor mine = torch::full({2}, c10::complex<float>(1, static_cast<float>(group.rank())));
  const Tensor sum = mine.clone();
  group.allreduce(sum);
  const Tensor last = group.all_gather(mine).back();
  const Tensor block = group.reduce_scatter(mine.repeat(group.size()));
  std::printf("%g %g %g\n", torch::imag(sum)[1].item<double>(), torch::imag(last)[1].item<double>(),
              torch::imag(block)[1].item<double>());
  group.allreduce(sum, ddprun::Op::max);
}

// A function of a user that has no gradient for the layer's weight. The weight counts as used.
struct NoGradient : torch::autograd::Function<NoGradient> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& input, const Tensor&) { return input.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0], {}};
  }
};

void undefined_gradient(const ddprun::Group& group) {
  Net net(8, true);
  net.unused->bias.requires_grad_(false);
  ddprun::DistributedDataParallel ddp(net, group);
  const Tensor loss = NoGradient::apply(loss_of(net, inputs(), targets()), net.unused->weight);
  try {
    loss.backward();
    std::printf("%g\n", net.unused->weight.grad().abs().sum().item<double>());
  } catch (const ddprun::Error& error) {
    const bool is_named = std::string(error.what()).find("\"unused.weight\"") != std::string::npos;
    if (ddprun::testing::kHooksSeeUndefinedGradients || !is_named) throw;
    std::printf("0\n");
  }
}

// The gradients of two tasks, kept over zero_grad().
void kept_gradients(const ddprun::Group& group) {
  torch::nn::Linear net(4, 2);
  ddprun::DistributedDataParallel ddp(*net, group);
  std::vector<Tensor> kept;
  for (const double value : {1., 5., 3.}) {
    net->zero_grad();
    net->forward(torch::full({1, 4}, value)).sum().backward();
    kept.push_back(net->weight.grad());
  }
  std::printf("%g %g %g\n", kept[0][0][0].item<double>(), kept[1][0][0].item<double>(), kept[2][0][0].item<double>());
}

}  // namespace

Acts module_acts() {
  const auto act = [](std::function<void(Net&)> change, torch::Dtype dtype = torch::kFloat32, bool find = false) {
    return
        [change = std::move(change), dtype, find](const ddprun::Group& group) { changed(group, change, dtype, find); };
  };
  const auto complex_act = [](bool trained, bool as_view, const ddprun::CommHook& hook = {}) {
    return [=](const ddprun::Group& group) { complex(group, trained, as_view, hook); };
  };
  return {
      {"unchanged", act([](Net&) {})},
      {"load_whole", act([](Net& net) {
         load_saved(net.first);
         load_saved(net.second);
       })},
      {"load_part", act([](Net& net) { load_saved(net.second); })},
      {"load_part_unused", act([](Net& net) { load_saved(net.second); }, torch::kFloat32, true)},
      {"to_double_and_back", act([](Net& net) {
         net.to(torch::kFloat64);
         net.to(torch::kFloat32);
       })},
      {"set_data", act([](Net& net) { net.first->weight.set_data(net.first->weight.detach().clone()); })},
      {"to_double", act([](Net& net) { net.to(torch::kFloat64); }, torch::kFloat64)},
      {"reshaped", act([](Net& net) { net.second->bias.set_data(torch::zeros({1})); })},
      {"replaced", act([](Net& net) { replace(net, false, true); })},
      {"replaced_unused", act([](Net& net) { replace(net, false, true); }, torch::kFloat32, true)},
      {"replaced_all", act([](Net& net) { replace(net, true, true); })},
      {"replaced_in_no_sync", replaced_in_no_sync},
      {"tied",
       [](const ddprun::Group& group) {
         torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Linear(3, 3));
         ddprun::DistributedDataParallel ddp(*net, group);
         net->replace_module("1", net->ptr(0));
         net->forward(torch::ones({1, 3})).sum().backward();
       }},
      {"registered", act([](Net& net) { net.second->register_parameter("scale", torch::ones({8})); })},
      {"unfrozen",
       [](const ddprun::Group& group) {
         Net net;
         net.first->weight.requires_grad_(false);
         ddprun::DistributedDataParallel ddp(net, group);
         net.first->weight.requires_grad_(true);
         step(group, net);
       }},
      {"common_layer", [](const auto& group) { common_layer(group, false); }},
      {"common_layer_views", [](const auto& group) { common_layer(group, true); }},
      {"common_parent", common_parent},
      {"constructed_again", constructed_again},
      {"new_buffer", new_buffer},
      {"complex_buffer", complex_act(false, false)},
      {"complex_parameter", complex_act(true, false)},
      {"complex_parameter_views", complex_act(true, true)},
      {"complex_power_sgd", complex_act(true, false, power_sgd_hook({.start_iter = 2}))},
      {"complex_fp16", complex_act(true, false, ddprun::fp16_compress_hook())},
      {"complex_collectives", complex_collectives},
      {"undefined_gradient", undefined_gradient},
      {"kept_gradients", kept_gradients},
  };
}

}  // namespace program
