// A user's program with synchronized BatchNorm. The test starts it as ranks. The first argument says what it does; it
// prints what the test compares.
#include "ddprun/sync_batch_norm.hpp"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/ddp.hpp"

namespace {

using torch::Tensor;
namespace nn = torch::nn;

constexpr int64_t kSamples = 24;

struct Case {
  std::string name;
  torch::ScalarType type = torch::kFloat64;
  enum class Parts { equal, unequal, empty } parts = Parts::equal;
  bool affine = true, tracked = true, channels_last = false, autocast = false;
  std::optional<double> momentum = 0.1;
};

nn::Sequential make_net(const Case& made) {
  const auto norm = [&](int64_t features) {
    return nn::BatchNormOptions(features).affine(made.affine).track_running_stats(made.tracked).momentum(made.momentum);
  };
  nn::Sequential net(nn::Conv2d(2, 6, 3), nn::BatchNorm2d(norm(6)), nn::ReLU(),
                     nn::Unflatten(1, std::vector<int64_t>{3, 2}), nn::BatchNorm3d(norm(3)), nn::Flatten(),
                     nn::Linear(54, 8), nn::BatchNorm1d(norm(8)), nn::Linear(8, 3));
  // Not ones and zeros, and the same in Python.
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : net->parameters()) {
    parameter.copy_(torch::sin(torch::arange(parameter.numel()) * 0.7 + parameter.dim()).view_as(parameter) * 0.3 +
                    0.1);
  }
  return net;
}

Tensor inputs(int step) {
  return torch::sin(torch::arange(kSamples * 2 * 25, torch::kFloat64) * (0.37 + step)).view({kSamples, 2, 5, 5}) + 1;
}
Tensor targets() {
  return torch::arange(kSamples).remainder(3);
}

// The first sample of each rank, and the end.
std::vector<int64_t> bounds(const ddprun::Group& group, Case::Parts parts) {
  std::vector<int64_t> all;
  const int size = group.size();
  for (int rank = 0; rank <= size; ++rank) {
    const int64_t place =
        parts == Case::Parts::unequal ? int64_t{rank} * rank * kSamples / (size * size) : kSamples * rank / size;
    all.push_back(place);
  }
  if (parts == Case::Parts::empty && size > 1) all[1] = 0;  // rank 0 has nothing
  return all;
}

// Sum over the samples, as a part of the mean over all.
Tensor loss_of(nn::Sequential& net, const Case& made, Tensor input, const Tensor& target) {
  if (made.channels_last) input = input.contiguous(torch::MemoryFormat::ChannelsLast);
  at::autocast::set_autocast_enabled(at::kCPU, made.autocast);
  const Tensor output = net->forward(input);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  const Tensor exact = output.to(made.type);
  return nn::functional::cross_entropy(exact, target,
                                       nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum)) /
         kSamples;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

double apart(const std::vector<Tensor>& left, const std::vector<Tensor>& right) {
  double largest = left.size() == right.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i].numel() == 0 && right[i].numel() == 0) continue;
    const double one = (left[i] - right[i]).abs().max().item<double>();
    largest = one <= largest ? largest : one;  // not a number counts
  }
  return largest;
}

std::vector<Tensor> gradients(nn::Module& net) {
  std::vector<Tensor> all;
  for (const Tensor& parameter : net.parameters()) all.push_back(parameter.grad());
  return all;
}

// Five steps of a converted net on parts and, in the same process, of an ordinary one on the whole batch. Prints how
// far apart they are: parameters, buffers, gradients of the parameters, of the input.
void compare(const ddprun::Group& group, const Case& made) {
  nn::Sequential net = make_net(made), whole = make_net(made);
  require(ddprun::convert_sync_batchnorm(*net, group) == 3, "not three");
  require(ddprun::convert_sync_batchnorm(*net, group) == 3, "not three again");
  net->to(made.type);  // what was converted stays converted
  whole->to(made.type);
  ddprun::DistributedDataParallel ddp(*net, group, {.bucket_cap_mb = 0.0005, .broadcast_buffers = false});
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD sgd_of_whole(whole->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto all = bounds(group, made.parts);
  const int64_t begin = all[static_cast<std::size_t>(group.rank())],
                end = all[static_cast<std::size_t>(group.rank()) + 1];
  double of_input = 0;
  for (int step = 0; step < 5; ++step) {
    Tensor input = inputs(step).to(made.type);
    Tensor part = input.slice(0, begin, end).clone().requires_grad_();
    input.requires_grad_();
    sgd.zero_grad();
    sgd_of_whole.zero_grad();
    (loss_of(net, made, part, targets().slice(0, begin, end)) * group.size()).backward();
    loss_of(whole, made, input, targets()).backward();
    sgd.step();
    sgd_of_whole.step();
    of_input = std::max(of_input, apart({part.grad() / group.size()}, {input.grad().slice(0, begin, end)}));
  }
  std::printf("rank %d %s: %.3g %.3g %.3g %.3g\n", group.rank(), made.name.c_str(),
              apart(net->parameters(), whole->parameters()), apart(net->buffers(), whole->buffers()),
              apart(gradients(*net), gradients(*whole)), of_input);
}

void train(const ddprun::Group& group) {
  using enum Case::Parts;
  for (const Case& made : std::vector<Case>{
           {.name = "double"},
           {.name = "unequal", .parts = unequal},
           {.name = "empty", .parts = empty},
           {.name = "channels_last", .parts = unequal, .channels_last = true},
           {.name = "affine_off", .affine = false},
           {.name = "tracking_off", .tracked = false},
           {.name = "cumulative", .momentum = std::nullopt},
           {.name = "float", .type = torch::kFloat32, .parts = unequal},
           {.name = "float_channels_last", .type = torch::kFloat32, .channels_last = true},
           {.name = "autocast", .type = torch::kFloat32, .autocast = true},
       }) {
    compare(group, made);
  }
}

// Half-precision input, as in autocast: how far statistics, output, and gradients are from those of the whole batch.
void half(const ddprun::Group& group) {
  for (const auto type : {torch::kBFloat16, torch::kFloat16}) {
    nn::BatchNorm2d norm(2), whole(2);
    ddprun::convert_sync_batchnorm(*norm, group);
    const auto all = bounds(group, Case::Parts::unequal);
    const auto rank = static_cast<std::size_t>(group.rank());
    const Tensor input = inputs(0).to(type).requires_grad_(), cotangent = inputs(1).to(type);
    const Tensor part = input.detach().slice(0, all[rank], all[rank + 1]).requires_grad_();
    const Tensor expected = whole->forward(input), output = norm->forward(part);
    expected.backward(cotangent);
    output.backward(cotangent.slice(0, all[rank], all[rank + 1]));
    group.allreduce(norm->weight.grad());
    group.allreduce(norm->bias.grad());
    require(output.scalar_type() == type && part.grad().scalar_type() == type, "the dtype has changed");
    std::printf("rank %d %s: %.3g %.3g %.3g %.3g\n", group.rank(), c10::toString(type),
                apart(norm->buffers(), whole->buffers()),
                apart({output}, {expected.slice(0, all[rank], all[rank + 1])}),
                apart(gradients(*norm), gradients(*whole)),
                apart({part.grad()}, {input.grad().slice(0, all[rank], all[rank + 1])}));
  }
}

// For Python: three steps, then all parameters and buffers.
void print_trained(const ddprun::Group& group) {
  const Case made{.name = "python"};
  nn::Sequential net = make_net(made);
  net->to(made.type);
  ddprun::convert_sync_batchnorm(*net, group);
  ddprun::DistributedDataParallel ddp(*net, group);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto all = bounds(group, Case::Parts::unequal);
  const int64_t begin = all[static_cast<std::size_t>(group.rank())],
                end = all[static_cast<std::size_t>(group.rank()) + 1];
  for (int step = 0; step < 5; ++step) {
    sgd.zero_grad();
    (loss_of(net, made, inputs(step).slice(0, begin, end), targets().slice(0, begin, end)) * group.size()).backward();
    sgd.step();
  }
  const auto print = [](const auto& items) {
    for (const auto& item : items) {
      std::printf("%s", item.key().c_str());
      const Tensor values = item.value().detach().to(torch::kFloat64).reshape(-1);
      for (int64_t i = 0; i < values.numel(); ++i) std::printf(" %.17g", values[i].template item<double>());
      std::printf("\n");
    }
  };
  if (group.rank() != 0) return;
  print(net->named_parameters());
  print(net->named_buffers());
}

std::vector<Tensor> results_of(nn::Sequential& net) {
  net->zero_grad();
  Tensor input = inputs(0).to(torch::kFloat32).requires_grad_();
  const Tensor output = net->forward(input);
  output.square().sum().backward();
  std::vector<Tensor> all = gradients(*net);
  all.insert(all.end(), {output.detach(), input.grad()});
  for (const Tensor& buffer : net->buffers()) all.push_back(buffer.clone());
  return all;
}

// What a conversion leaves as it was.
void ordinary(const ddprun::Group& group) {
  const auto equal = [](const std::vector<Tensor>& left, const std::vector<Tensor>& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& a, const auto& b) { return a.equal(b); });
  };
  const Case made{.name = "ordinary"};
  nn::Sequential before = make_net(made), after = make_net(made), converted = make_net(made);
  const auto results = results_of(before);
  ddprun::convert_sync_batchnorm(*converted, group);
  require(equal(results_of(after), results), "a net that is not converted has changed");

  // One rank alone: no collective.
  converted->eval();
  after->eval();
  const Case no_tracking{.name = "no tracking", .tracked = false};
  nn::Sequential untracked = make_net(no_tracking), same = make_net(no_tracking);
  ddprun::convert_sync_batchnorm(*untracked, group);
  untracked->eval();
  same->eval();
  for (std::size_t i = 0; i < after->buffers().size(); ++i) after->buffers()[i].copy_(converted->buffers()[i]);
  if (group.rank() == 0) {
    require(equal(results_of(converted), results_of(after)), "eval mode differs");
    require(equal(results_of(untracked), results_of(same)), "eval mode without running statistics differs");
  }
  const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(converted->clone());
  copy->train();
  if (group.rank() == 0) copy->forward(inputs(0).to(torch::kFloat32));
  std::printf("as before\n");
}

// Statistics are those of all ranks without a gradient too.
void without_gradients(const ddprun::Group& group) {
  nn::BatchNorm1d guarded(2), inference(2);
  const auto input = torch::full({4, 2}, static_cast<float>(group.rank()));
  ddprun::convert_sync_batchnorm(*guarded, group);
  ddprun::convert_sync_batchnorm(*inference, group);
  {
    const torch::NoGradGuard guard;
    guarded->forward(input);
  }
  {
    const torch::InferenceMode guard;
    inference->forward(input);
  }
  std::printf("rank %d: %.4f %.4f\n", group.rank(), guarded->running_mean[1].item<double>(),
              inference->running_mean[1].item<double>());
}

const std::map<std::string, std::function<void(std::optional<ddprun::Group>)>> kActs = {
    {"train", [](const auto& group) { train(*group); }},
    {"print_trained", [](const auto& group) { print_trained(*group); }},
    {"half", [](const auto& group) { half(*group); }},
    {"ordinary", [](const auto& group) { ordinary(*group); }},
    {"without_gradients", [](const auto& group) { without_gradients(*group); }},
    {"unnamed",
     [](const auto& group) {
       nn::Sequential net = make_net({.name = "unnamed", .affine = false, .tracked = false});
       ddprun::convert_sync_batchnorm(*net, *group);
     }},
    {"twice",
     [](const auto& group) {
       nn::BatchNorm1d norm(2);
       ddprun::convert_sync_batchnorm(*norm, *group);
       const Tensor input = torch::randn({4, 2}).requires_grad_();
       torch::autograd::grad({norm->forward(input).square().sum()}, {input}, {}, true, true);
     }},
    {"ended",
     [](std::optional<ddprun::Group> group) {
       nn::BatchNorm1d norm(2);
       ddprun::convert_sync_batchnorm(*norm, *group);
       group->barrier();
       group.reset();
       norm->forward(torch::ones({4, 2}));
     }},
};

}  // namespace

int main(int, char** arguments) {
  kActs.at(arguments[1])(ddprun::init({.exit_on_error = true}));
}
