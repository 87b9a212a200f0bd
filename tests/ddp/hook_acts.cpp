// Communication hooks.
#include <atomic>
#include <limits>
#include <stdexcept>
#include <thread>

#include "ddp/program.hpp"
#include "ddp_powersgd/power_sgd.hpp"

namespace program {
namespace {

void hooked(const ddprun::Group& group, const ddprun::CommHook& hook, int64_t hidden = 8) {
  torch::manual_seed(1);
  Net net(hidden);
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4});
  if (hook) ddp.register_comm_hook(hook);
  train_ten_steps(group, net);
  std::printf("loss %.6f\n", loss_of(net, inputs(), targets()).item<double>());
}

// A step overflows, and is skipped, as with loss scaling.
void overflow(const ddprun::Group& group) {
  torch::manual_seed(1);
  Net net(64);
  ddprun::DistributedDataParallel ddp(net, group);
  ddp.register_comm_hook(power_sgd_hook({.matrix_approximation_rank = 2, .start_iter = 2}));
  torch::optim::SGD sgd(net.parameters(), 0.1);
  for (int step = 0; step < 20; ++step) {
    sgd.zero_grad();
    const double scale = step == 5 ? std::numeric_limits<double>::infinity() : 1;
    (loss_of(net, part_of(group, inputs()), part_of(group, targets())) * scale).backward();
    if (net.first->weight.grad().isfinite().all().item<bool>()) sgd.step();
  }
  print_state(group, net);
  std::printf("loss %.6f\n", loss_of(net, inputs(), targets()).item<double>());
}

// Says what a hook sees, in the second step.
void seen(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4});
  std::string text;
  ddp.register_comm_hook([&](ddprun::GradBucket& bucket, const ddprun::Group& ranks) {
    int64_t elements = 0;
    for (const Tensor& parameter : bucket.parameters) elements += parameter.numel();
    if (elements != bucket.buffer.numel() || bucket.gradients.size() != bucket.parameters.size()) text += "differ ";
    text += std::to_string(bucket.index) + (bucket.is_last ? "last" : "") + " ";
    bucket.buffer.fill_(ranks.rank() + 1);
    ranks.allreduce(bucket.buffer);
  });
  for (int step = 0; step < 2; ++step) {
    text.clear();
    loss_of(net, inputs(), targets()).backward();
  }
  std::printf("%s%g\n", text.c_str(), net.first->weight.grad().max().item<double>());
}

// Says which stages ran in the thread of backward, how often each ran, and how often a bucket had no payload yet.
void stages(const ddprun::Group& group) {
  const std::thread::id main = std::this_thread::get_id();
  std::atomic<int> prepared = 0, reduced = 0, completed = 0, fresh = 0, elsewhere = 0, here = 0;
  ddprun::CommHook hook;
  hook.prepare = [&](ddprun::GradBucket& bucket, const ddprun::Group& ranks) {
    ++prepared;
    if (std::this_thread::get_id() != main) ++elsewhere;
    if (!bucket.payload.defined()) {
      ++fresh;
      bucket.payload = torch::empty_like(bucket.buffer);
    }
    torch::div_out(bucket.payload, bucket.buffer, ranks.size());
  };
  hook.reduce = [&](ddprun::GradBucket& bucket, const ddprun::Group& ranks) {
    ++reduced;
    if (std::this_thread::get_id() == main) ++here;
    ranks.allreduce(bucket.payload);
  };
  hook.complete = [&](ddprun::GradBucket& bucket, const ddprun::Group&) {
    ++completed;
    if (std::this_thread::get_id() != main) ++elsewhere;
    bucket.buffer.copy_(bucket.payload);
  };
  hooked(group, hook);
  std::printf("stages %d %d %d, fresh %d, elsewhere %d, here %d\n", prepared.load(), reduced.load(), completed.load(),
              fresh.load(), elsewhere.load(), here.load());
}

}  // namespace

Acts hook_acts() {
  return {
      {"hooked_plain", [](const auto& group) { hooked(group, {}); }},
      {"hooked_allreduce", [](const auto& group) { hooked(group, ddprun::allreduce_hook); }},
      {"hooked_fp16", [](const auto& group) { hooked(group, ddprun::fp16_compress_hook()); }},
      {"hooked_bf16", [](const auto& group) { hooked(group, ddprun::bf16_compress_hook()); }},
      {"hooked_power_sgd",
       [](const auto& group) { hooked(group, power_sgd_hook({.matrix_approximation_rank = 2, .start_iter = 3}), 64); }},
      {"power_sgd_overflow", overflow},
      {"hooked_captured",  // the hook communicates through the group of the program
       [](const auto& group) {
         hooked(group, [&](ddprun::GradBucket& bucket, const ddprun::Group&) {
           bucket.buffer.div_(group.size());
           group.allreduce(bucket.buffer);
         });
       }},
      {"hook_assigns_buffer",
       [](const auto& group) {
         hooked(group, [](ddprun::GradBucket& bucket, const ddprun::Group& ranks) {
           const Tensor sum = bucket.buffer.to(torch::kFloat64);
           ranks.allreduce(sum);
           bucket.buffer = (sum / ranks.size()).to(torch::kFloat32);
         });
       }},
      {"hook_assigns_gradients",
       [](const auto& group) {
         ddprun::CommHook hook = ddprun::allreduce_hook;
         hook.complete = [](ddprun::GradBucket& bucket, const ddprun::Group&) {
           for (Tensor& gradient : bucket.gradients) gradient = gradient.clone();
           bucket.buffer.zero_();
         };
         hooked(group, hook);
       }},
      {"hook_assigns_other",
       [](const auto& group) {
         hooked(group, [](ddprun::GradBucket& bucket, const ddprun::Group&) {
           bucket.buffer = bucket.buffer.to(torch::kFloat64);
         });
       }},
      {"hook_seen", seen},
      {"hook_stages", stages},
      {"hook_prepare_throws",
       [](const auto& group) {
         ddprun::CommHook hook = ddprun::bf16_compress_hook();
         hook.prepare = [](ddprun::GradBucket& bucket, const ddprun::Group& ranks) {
           if (ranks.rank() == 1 && bucket.is_last) throw std::runtime_error("the first stage is broken");
           bucket.payload = bucket.buffer;
         };
         hooked(group, hook);
       }},
      {"hook_throws",
       [](const auto& group) {
         hooked(group, [&](ddprun::GradBucket&, const ddprun::Group& ranks) {
           if (ranks.rank() == 1) throw std::runtime_error("the hook is broken");
           ranks.barrier();
         });
       }},
      {"hook_twice",
       [](const auto& group) {
         Net net;
         ddprun::DistributedDataParallel ddp(net, group);
         for (int i = 0; i < 2; ++i) ddp.register_comm_hook(ddprun::allreduce_hook);
       }},
      {"hook_empty",
       [](const auto& group) {
         Net net;
         ddprun::CommHook hook;
         hook.prepare = [](ddprun::GradBucket&, const ddprun::Group&) {};
         ddprun::DistributedDataParallel(net, group).register_comm_hook(hook);
       }},
      {"power_sgd_early", [](const auto&) { power_sgd_hook({.start_iter = 1}); }},
  };
}

}  // namespace program
