// Training, buffers, collectives and errors.
#include <torch/script.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "ddp/program.hpp"

namespace program {
namespace {

// Ten steps on all samples: each rank has its part. Every world size gives the same weights, up to rounding.
void train(const ddprun::Group& group) {
  torch::manual_seed(static_cast<uint64_t>(1 + group.rank()));  // rank 0's weights must win
  Net net;
  if (group.size() == 1) torch::manual_seed(1);
  ddprun::DistributedDataParallel ddp(net, group);
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 10; ++step) {
    sgd.zero_grad(step % 2 == 0);  // with and without set_to_none
    loss_of(net, part_of(group, inputs()), part_of(group, targets())).backward();
    sgd.step();
  }
  print_state(group, net);
}

// The same with two micro-batches per step.
void accumulate(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 10; ++step) {
    sgd.zero_grad();
    const auto input = part_of(group, inputs()).chunk(2), target = part_of(group, targets()).chunk(2);
    {
      const auto held = ddp.no_sync();
      (loss_of(net, input[0], target[0]) / 2).backward();
    }
    (loss_of(net, input[1], target[1]) / 2).backward();
    sgd.step();
  }
  print_state(group, net);
}

void buffers(const ddprun::Group& group) {
  Net net(8, false, true);
  ddprun::DistributedDataParallel ddp(net, group);
  loss_of(net, part_of(group, inputs()), part_of(group, targets())).backward();
  print_state(group, net);
}

// A mask, as in a Transformer, and frequencies: types without a reduction.
void odd_buffers(const ddprun::Group& group) {
  Net net;
  net.register_buffer("mask", torch::arange(3) == group.rank());
  net.register_buffer("angles", torch::full({2}, c10::complex<float>(1, static_cast<float>(group.rank()))));
  ddprun::DistributedDataParallel ddp(net, group);
  loss_of(net, part_of(group, inputs()), part_of(group, targets())).backward();
  const Tensor mask = net.named_buffers()["mask"], angles = net.named_buffers()["angles"];
  std::printf("mask %ld of %ld, angle %g\n", mask.to(torch::kInt64).argmax().item<int64_t>(),
              mask.sum().item<int64_t>(), torch::imag(angles).max().item<double>());
}

void unused(const ddprun::Group& group, bool find) {
  torch::manual_seed(1);
  Net net(8, true);
  ddprun::DistributedDataParallel ddp(net, group, {.find_unused_parameters = find});
  loss_of(net, part_of(group, inputs()), part_of(group, targets())).backward();
  torch::optim::SGD(net.parameters(), 0.1).step();
  print_state(group, net);
}

// Two modules, each with a backward of its own.
void two_modules(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net a, b(16);
  ddprun::DistributedDataParallel ddp_of_a(a, group), ddp_of_b(b, group);
  for (Net* net : {&a, &b, &a}) loss_of(*net, part_of(group, inputs()), part_of(group, targets())).backward();
  for (Net* net : {&a, &b}) torch::optim::SGD(net->parameters(), 0.1).step();
  print_state(group, a);
  print_state(group, b);
}

void tensors(const ddprun::Group& group) {
  const Tensor sum = torch::full({3}, group.rank() + 1.0);
  group.allreduce(sum);
  const Tensor largest = torch::tensor({static_cast<int64_t>(group.rank())});
  group.allreduce(largest, ddprun::Op::max);
  const Tensor from_last = torch::full({2}, static_cast<float>(group.rank()));
  group.broadcast(from_last, group.size() - 1);
  std::string gathered;
  for (const Tensor& tensor : group.all_gather(torch::tensor(group.rank() * 10))) {
    gathered += " " + std::to_string(tensor.item<int64_t>());
  }
  const Tensor blocks = torch::arange(2.0 * group.size()).reshape({group.size(), 2});
  const Tensor mine = group.reduce_scatter(blocks);
  group.barrier();
  std::printf("%g %ld %g%s %g\n", sum[2].item<double>(), largest.item<int64_t>(), from_last[1].item<double>(),
              gathered.c_str(), mine.sum().item<double>());
}

void sampler(const ddprun::Group& group) {
  ddprun::DistributedSampler sampler(10, group, true, 3);
  sampler.set_epoch(2);
  std::string text;
  while (const auto batch = sampler.next(4)) {
    for (const std::size_t index : *batch) text += std::to_string(index) + " ";
    text += "| ";
  }
  std::printf("rank %d: %s\n", group.rank(), text.c_str());
}

// As train(), over a list of the parameters, in an object that was moved.
void list_of_parameters(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net net;
  std::optional<ddprun::DistributedDataParallel> ddp;
  {
    ddprun::DistributedDataParallel first(net.parameters(), group);
    const auto held = first.no_sync();
    ddp = std::move(first);
  }
  train_ten_steps(group, net);
}

// A module of TorchScript, with a buffer.
void script(const ddprun::Group& group) {
  torch::jit::Module net("net");
  net.register_parameter("weight", torch::full({4, 3}, 0.1 * (group.rank() + 1)).requires_grad_(), false);
  net.register_buffer("scale", torch::full({1}, group.rank() + 2.0));
  net.define("def forward(self, x):\n  return torch.tanh(torch.matmul(x, self.weight)) * self.scale\n");
  ddprun::DistributedDataParallel ddp(net, group);
  const Tensor weight = net.attr("weight").toTensor();
  torch::optim::SGD sgd({weight}, 0.1);
  for (int step = 0; step < 4; ++step) {  // the first ones are those that the executor of TorchScript profiles
    sgd.zero_grad();
    const Tensor output = net.forward({part_of(group, inputs())}).toTensor();
    torch::nn::functional::cross_entropy(output, part_of(group, targets())).backward();
    sgd.step();
  }
  std::printf("rank %d of %d: %.9f %.9f\n", group.rank(), group.size(), weight.sum().item<double>(),
              weight.square().sum().item<double>());
}

void derived_parameter(const ddprun::Group& group) {
  const Tensor leaf = torch::ones({2}).requires_grad_();
  ddprun::DistributedDataParallel ddp({leaf, leaf * 2}, group);
}

void other_options(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.find_unused_parameters = group.rank() == 1});
}

void empty_group(const ddprun::Group&) {
  for (const std::function<void(const ddprun::Group&)>& use :
       {std::function<void(const ddprun::Group&)>([](const auto& group) { group.barrier(); }),
        {[](const auto& group) { group.split(0); }},
        {[](const auto& group) { ddprun::DistributedDataParallel({torch::ones({1}).requires_grad_()}, group); }}}) {
    try {
      use(ddprun::Group());
    } catch (const ddprun::Error& error) {
      std::printf("%s\n", error.what());
    }
  }
}

void many_unused(const ddprun::Group& group) {
  torch::nn::Sequential net;
  for (int i = 0; i < 30; ++i) net->push_back(torch::nn::Linear(2, 2));
  ddprun::DistributedDataParallel ddp(*net, group);
  net[0]->as<torch::nn::Linear>()->weight.sum().backward();
}

void added(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  net.register_module("late", torch::nn::Linear(2, 2));
  loss_of(net, inputs(), targets()).backward();
}

void frozen(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  net.first->weight.requires_grad_(false);
  loss_of(net, inputs(), targets()).backward();
}

// Each rank trains another of two layers with the same shape.
void frozen_by_rank(const ddprun::Group& group) {
  torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Linear(3, 3));
  for (const Tensor& tensor : net[group.rank()]->parameters()) tensor.requires_grad_(false);
  const ddprun::DistributedDataParallel ddp(*net, group);
}

}  // namespace

Acts training_acts() {
  return {
      {"train", train},
      {"accumulate", accumulate},
      {"buffers", buffers},
      {"odd_buffers", odd_buffers},
      {"unused", [](const auto& group) { unused(group, false); }},
      {"find_unused", [](const auto& group) { unused(group, true); }},
      {"two_modules", two_modules},
      {"tensors", tensors},
      {"sampler", sampler},
      {"list", list_of_parameters},
      {"script", script},
      {"derived_parameter", derived_parameter},
      {"other_options", other_options},
      {"empty_group", empty_group},
      {"many_unused", many_unused},
      {"added", added},
      {"frozen", frozen},
      {"frozen_by_rank", frozen_by_rank},
      {"shapes",
       [](const auto& group) {
         Net net(8 + group.rank());
         const ddprun::DistributedDataParallel ddp(net, group);
       }},
      {"mismatch", [](const auto& group) { group.allreduce(torch::zeros(2 + group.rank())); }},
      {"throws",
       [](const auto& group) {
         if (group.rank() == 1) throw std::runtime_error("the disk is on fire");
         group.barrier();
       }},
      {"leaves",
       [](const auto& group) {
         if (group.rank() == 1) std::_Exit(0);
         group.barrier();
       }},
  };
}

}  // namespace program
