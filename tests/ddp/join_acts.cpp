// Join: ranks with different numbers of steps.
#include "ddp/program.hpp"

namespace program {
namespace {

// Rank r has 2 + 3 * (r % 2) batches, of one sample each. Rank 2 has as many as rank 0.
int64_t batches_of(int rank) {
  return 2 + 3 * (rank % 2);
}

void uneven(const ddprun::Group& group, ddprun::JoinOptions options, bool with_norm = false) {
  torch::manual_seed(1);
  Net net(8, false, with_norm);
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4});
  torch::optim::SGD sgd(net.parameters(), 0.1);
  const auto loop = [&] {
    for (int64_t batch = 0; batch < batches_of(group.rank()); ++batch) {
      sgd.zero_grad();
      const int64_t sample = 2 * (group.rank() + 3 * batch);
      loss_of(net, inputs().narrow(0, sample % 22, 2), targets().narrow(0, sample % 22, 2)).backward();
      sgd.step();
    }
  };
  ddp.join(loop, options);
  // Afterwards, training goes on as usual.
  sgd.zero_grad();
  loss_of(net, inputs(), targets()).backward();
  sgd.step();
  print_state(group, net);
}

// The same for two ranks, computed by one.
void uneven_expected(const ddprun::Group& group, bool by_initial) {
  torch::manual_seed(1);
  Net net;
  torch::optim::SGD sgd(net.parameters(), 0.1);
  for (int64_t batch = 0; batch < batches_of(1); ++batch) {
    sgd.zero_grad();
    const int active = batch < batches_of(0) ? 2 : 1;
    for (int rank = 2 - active; rank < 2; ++rank) {
      const int64_t sample = 2 * (rank + 3 * batch);
      const Tensor loss = loss_of(net, inputs().narrow(0, sample % 22, 2), targets().narrow(0, sample % 22, 2));
      (loss / (by_initial ? 2 : active)).backward();
    }
    sgd.step();
  }
  sgd.zero_grad();
  loss_of(net, inputs(), targets()).backward();
  sgd.step();
  print_state(group, net);
}

// Two epochs, with an optimizer that has a state. A rank without inputs steps too.
void uneven_adam(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  torch::optim::Adam adam(net.parameters(), 0.1);
  const auto loop = [&] {
    for (int64_t batch = 0; batch < batches_of(group.rank()); ++batch) {
      adam.zero_grad();
      loss_of(net, inputs().narrow(0, 2 * group.rank() + batch, 2), targets().narrow(0, batch, 2)).backward();
      adam.step();
    }
  };
  for (int epoch = 0; epoch < 2; ++epoch) ddp.join(loop, {.after_backward = [&] { adam.step(); }});
  adam.zero_grad();
  loss_of(net, inputs(), targets()).backward();
  adam.step();  // its state counts
  print_state(group, net);
}

// The error is caught on all ranks, and training continues.
void uneven_caught(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4});
  torch::optim::SGD sgd(net.parameters(), 0.1);
  const auto loop = [&](int64_t batches) {
    for (int64_t batch = 0; batch < batches; ++batch) {
      sgd.zero_grad();
      loss_of(net, inputs().narrow(0, 2 * group.rank(), 2), targets().narrow(0, 0, 2)).backward();
      sgd.step();
    }
  };
  try {
    ddp.join([&] { loop(batches_of(group.rank())); }, {.throw_on_early_termination = true});
  } catch (const std::exception&) {
  }
  loop(2);
  print_state(group, net);
}

// What else a step communicates: here, the number of samples.
void more_collectives(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group);
  int64_t total = 0;
  const auto count = [&](int64_t mine) {
    const Tensor samples = torch::tensor({mine});
    group.allreduce(samples);
    total += samples.item<int64_t>();
  };
  const auto loop = [&] {
    for (int64_t batch = 0; batch < batches_of(group.rank()); ++batch) {
      loss_of(net, inputs(), targets()).backward();
      count(1);
    }
  };
  ddp.join(loop, {.after_backward = [&] { count(0); }});
  std::printf("%ld samples\n", total);
}

}  // namespace

Acts join_acts() {
  return {
      {"uneven", [](const auto& group) { uneven(group, {}); }},
      {"uneven_active", [](const auto& group) { uneven(group, {.divide_by_initial_world_size = false}); }},
      {"uneven_norm", [](const auto& group) { uneven(group, {}, true); }},
      {"uneven_adam", uneven_adam},
      {"uneven_refused", [](const auto& group) { uneven(group, {.throw_on_early_termination = true}); }},
      {"uneven_caught", uneven_caught},
      {"expected", [](const auto& group) { uneven_expected(group, true); }},
      {"expected_active", [](const auto& group) { uneven_expected(group, false); }},
      {"more_collectives", more_collectives},
  };
}

}  // namespace program
