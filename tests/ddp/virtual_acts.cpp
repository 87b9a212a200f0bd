// Virtual ranks.
#include <c10/util/Exception.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "ddp/program.hpp"
#include "ddprun/comm_hooks.hpp"
#include "ddprun/error.hpp"
#include "ddprun/sync_batch_norm.hpp"
#include "ddprun/zero.hpp"

namespace program {
namespace {

constexpr int kVirtualRanks = 4;

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// A training with BatchNorm and dropout.
struct Training {
  Training() {
    torch::manual_seed(7);
    net = std::make_unique<Net>(8, false, true);
    torch::manual_seed(11);
    sgd = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  }
  // The part of a step of one virtual rank.
  void compute(int64_t step, int rank) {
    ddprun::DistributedSampler sampler(24, kVirtualRanks, rank);
    sampler.set_epoch(step);
    const auto indices = *sampler.next(24);
    const Tensor mine = torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
    const Tensor input = torch::dropout(all.index_select(0, mine), 0.2, true);
    loss_of(*net, input, classes.index_select(0, mine)).backward();
  }
  // Of the weights, and perhaps of this rank's buffers.
  void print_hash(bool with_buffers) const {
    std::string bytes;
    for (const Tensor& tensor : net->parameters()) bytes += bytes_of(tensor);
    if (with_buffers) {
      for (const Tensor& tensor : net->buffers()) bytes += bytes_of(tensor);
    }
    std::printf("%zx\n", std::hash<std::string>()(bytes));
  }

  const Tensor all = inputs(), classes = targets();
  std::unique_ptr<Net> net;
  std::unique_ptr<torch::optim::SGD> sgd;
};

void train(const ddprun::Group& group, bool broadcast_buffers, bool synchronizes = false) {
  Training training;
  if (synchronizes) ddprun::convert_sync_batchnorm(*training.net, group);
  ddprun::DistributedDataParallel ddp(*training.net, group,
                                      {.broadcast_buffers = broadcast_buffers, .virtual_ranks = kVirtualRanks});
  for (int step = 0; step < 10; ++step) {
    torch::rand({1 + group.rank()});  // random numbers outside of a step change nothing
    ddp.for_each_virtual_rank([&](int rank) { training.compute(step, rank); });
    training.sgd->step();
  }
  training.print_hash(broadcast_buffers);
}

// The second training has another number of virtual ranks, and ends earlier. Between steps, a module is ordinary.
void train_two(const ddprun::Group& group) {
  Training one, two;
  for (const Training* each : {&one, &two}) ddprun::convert_sync_batchnorm(*each->net, group);
  ddprun::DistributedDataParallel first(*one.net, group, {.virtual_ranks = kVirtualRanks});
  std::optional<ddprun::DistributedDataParallel> second(std::in_place, *two.net, group,
                                                        ddprun::DistributedDataParallelOptions{.virtual_ranks = 8});
  for (int step = 0; step < 10; ++step) {
    first.for_each_virtual_rank([&](int rank) { one.compute(step, rank); });
    if (second) second->for_each_virtual_rank([&](int rank) { two.compute(step, rank % kVirtualRanks); });
    one.sgd->step();
    two.net->forward(two.all);
    if (step == 5) second.reset();
  }
  one.print_hash(true);
}

// Kills this process if the variable DEATHS names its rank, the step and the place: "1 3 before 0 5 inside". One that
// takes the place of a dead one lives.
void die_at(int64_t step, const std::string& place) {
  const char *const deaths = std::getenv("DEATHS"), *const rank = std::getenv("RANK");
  if (deaths == nullptr || rank == nullptr || std::getenv("DDPRUN_REPLACES") != nullptr) return;
  std::istringstream text(deaths);
  int64_t its_step = 0;
  for (std::string its_rank, its_place; text >> its_rank >> its_step >> its_place;) {
    if (its_rank == rank && its_step == step && its_place == place) std::raise(SIGKILL);
  }
}

// STEPS and PAUSE (milliseconds per step) are variables of the environment.
int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

void survive(const ddprun::Group& group) {
  Training training;
  const int first = number_of("FIRST", 0), steps = number_of("STEPS", 10);
  const std::chrono::milliseconds pause(number_of("PAUSE", 0));
  try {
    group.barrier();
  } catch (const ddprun::Error& error) {
    std::fprintf(stderr, "joins: %d, %s\n", group.is_joining(), error.what());
  }
  const auto step = [&](ddprun::DistributedDataParallel& ddp, int64_t n) {
    group.barrier();
    group.monitored_barrier();
    torch::manual_seed(static_cast<uint64_t>(n));  // changes nothing within for_each_virtual_rank()
    die_at(n, "before");
    ddp.for_each_virtual_rank([&](int rank) {
      die_at(n, "inside");
      training.compute(n, rank);
    });
    training.sgd->step();
    die_at(n, "after");
    std::this_thread::sleep_for(pause);
    return n + 1 < steps;
  };
  if (!ddprun::train_elastic(group, *training.net, *training.sgd, {.virtual_ranks = kVirtualRanks}, step, first))
    return;
  std::printf("%d ranks ", group.size());
  training.print_hash(true);
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
  print_error([&] { ddp.for_each_virtual_rank([&](int) { group.allreduce(torch::ones({1})); }); });
  Net other(8, false, true);
  const auto same_ranks = group.split(0);
  ddprun::convert_sync_batchnorm(other, *same_ranks);
  print_error([&] { const DistributedDataParallel of_other(other, group, {.virtual_ranks = 2}); });
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

void refuse_elastic(const ddprun::Group& group) {
  Training training;
  const auto print = [&](const ddprun::Group& ranks, torch::optim::Optimizer& optimizer,
                         const ddprun::DistributedDataParallelOptions& options, bool steps = true) {
    print_error([&] {
      const auto step = [&](ddprun::DistributedDataParallel& ddp, int64_t n) {
        if (steps) ddp.for_each_virtual_rank([&](int rank) { training.compute(n, rank); });
        return false;
      };
      if (ddprun::train_elastic(ranks, *training.net, optimizer, options, step)) std::puts("trained");
    });
  };
  print(group, *training.sgd, {});
  print(group, *training.sgd, {.broadcast_buffers = false, .virtual_ranks = 2});
  ddprun::ZeroRedundancyOptimizer<torch::optim::SGD> zero(training.net->parameters(), torch::optim::SGDOptions(0.1),
                                                          group);
  print(group, zero, {.virtual_ranks = 2});
  torch::optim::SGD other({torch::ones({1})}, torch::optim::SGDOptions(0.1));
  print(group, other, {.virtual_ranks = 2});
  print(group, *training.sgd, {.virtual_ranks = 2}, false);
  print(group, *training.sgd, {.virtual_ranks = 2});
  const auto part = group.split(0);
  print(*part, *training.sgd, {.virtual_ranks = 2});
  print(group, *training.sgd, {.virtual_ranks = 2});
}

// The second rank dies while the first waits for it, and has finished the step already.
void communicate_too_late(const ddprun::Group& group) {
  Training training;
  const auto step = [&](ddprun::DistributedDataParallel& ddp, int64_t n) {
    ddp.for_each_virtual_rank([&](int rank) { training.compute(n, rank); });
    training.sgd->step();
    if (n == 3 && group.rank() == 1) std::raise(SIGKILL);
    group.barrier();
    return true;
  };
  if (ddprun::train_elastic(group, *training.net, *training.sgd, {.virtual_ranks = 2}, step)) std::puts("trained");
}

}  // namespace

Acts virtual_acts() {
  return {{"virtual", [](const auto& group) { train(group, true); }},
          {"virtual_synchronized", [](const auto& group) { train(group, true, true); }},
          {"virtual_two", train_two},
          {"virtual_own_buffers", [](const auto& group) { train(group, false); }},
          {"virtual_refused", refuse},
          {"virtual_seeds", differ},
          {"virtual_plain", refuse_plain},
          {"elastic", survive},
          {"elastic_refused", refuse_elastic},
          {"elastic_late", communicate_too_late}};
}

}  // namespace program
