// Virtual ranks.
#include <c10/util/Exception.h>

#include <string_view>

#include "ddp/program.hpp"
#include "ddprun/comm_hooks.hpp"
#include "ddprun/error.hpp"

namespace program {
namespace {

constexpr int kVirtualRanks = 4;

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Ten steps with BatchNorm and dropout. Prints a hash of the weights, and of rank 0's buffers.
void train(const ddprun::Group& group, bool broadcast_buffers) {
  const Tensor all = inputs(), classes = targets();
  torch::manual_seed(7);
  Net net(8, false, true);
  torch::manual_seed(11);
  ddprun::DistributedDataParallel ddp(net, group,
                                      {.broadcast_buffers = broadcast_buffers, .virtual_ranks = kVirtualRanks});
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 10; ++step) {
    torch::rand({1 + group.rank()});  // random numbers outside of a step change nothing
    ddp.for_each_virtual_rank([&](int rank) {
      ddprun::DistributedSampler sampler(24, kVirtualRanks, rank);
      sampler.set_epoch(step);
      const auto indices = *sampler.next(24);
      const Tensor mine = torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
      const Tensor input = torch::dropout(all.index_select(0, mine), 0.2, true);
      loss_of(net, input, classes.index_select(0, mine)).backward();
    });
    sgd.step();
  }
  std::string bytes;
  for (const Tensor& tensor : net.parameters()) bytes += bytes_of(tensor);
  if (broadcast_buffers) {
    for (const Tensor& tensor : net.buffers()) bytes += bytes_of(tensor);
  }
  std::printf("%zx\n", std::hash<std::string>()(bytes));
}

void print_error(const std::function<void()>& call) {
  try {
    call();
    std::puts("no error");
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
}

void refuse(const ddprun::Group& group) {
  torch::manual_seed(7);
  Net net;
  using ddprun::DistributedDataParallel;
  for (const int count : {-1, 1, 3}) {
    print_error([&] { const DistributedDataParallel ddp(net, group, {.virtual_ranks = count}); });
  }
  DistributedDataParallel ddp(net, group, {.virtual_ranks = 2});
  const auto backward = [&] { loss_of(net, inputs(), targets()).backward(); };
  print_error([&] { ddp.register_comm_hook(ddprun::fp16_compress_hook()); });
  print_error([&] { ddp.join([] {}); });
  print_error([&] { ddp.for_each_virtual_rank([](int) {}); });
  print_error(backward);
  const auto held = ddp.no_sync();
  print_error([&] { ddp.for_each_virtual_rank([](int) {}); });
}

void differ(const ddprun::Group& group) {
  torch::manual_seed(static_cast<uint64_t>(group.rank()));
  Net net;
  print_error([&] { const ddprun::DistributedDataParallel ddp(net, group, {.virtual_ranks = 2}); });
}

void refuse_plain(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  print_error([&] { ddp.for_each_virtual_rank([](int) {}); });
}

}  // namespace

Acts virtual_acts() {
  return {{"virtual", [](const auto& group) { train(group, true); }},
          {"virtual_own_buffers", [](const auto& group) { train(group, false); }},
          {"virtual_refused", refuse},
          {"virtual_seeds", differ},
          {"virtual_plain", refuse_plain}};
}

}  // namespace program
