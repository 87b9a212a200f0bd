// A user's program that splits its ranks into groups. The test starts it as ranks: ACT. It prints what the test
// compares.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "ddprun/ddp.hpp"
#include "ddprun/error.hpp"

namespace {

using ddprun::Group;
using torch::Tensor;

std::string sum_in(const Group& group, int value) {
  const Tensor tensor = torch::full({3}, value, torch::kInt64);
  group.allreduce(tensor);
  return std::to_string(tensor[2].item<int64_t>());
}

// Two groups of neighbours in reverse order, which communicate at once; then all ranks; then groups of the groups.
void halves(const Group& group) {
  const int rank = group.rank();
  const Group half = *group.split(rank / 2, -rank);
  for (int i = 0; i < 20; ++i) sum_in(half, i);
  std::string line = "rank " + std::to_string(rank) + ": " + std::to_string(half.rank()) + " of " +
                     std::to_string(half.size()) + ", local " + std::to_string(half.local_rank()) + ", sum " +
                     sum_in(half, rank);
  line += ", all " + sum_in(group, rank);
  const Group one = *half.split(half.rank());
  line += ", " + std::to_string(one.size()) + " alone " + sum_in(one, rank);
  const Group again = *half.split(0);
  line += ", again " + sum_in(again, rank);
  group.barrier();
  std::printf("%s\n", line.c_str());
}

// Only even ranks form a group.
void some(const Group& group) {
  const auto even = group.split(group.rank() % 2 == 0 ? 7 : -1);
  const auto listed = group.new_group({2, 0});
  std::string line = "rank " + std::to_string(group.rank()) + ":";
  if (even) line += " even " + sum_in(*even, group.rank());
  if (listed) line += " listed " + std::to_string(listed->rank()) + " " + sum_in(*listed, group.rank());
  group.monitored_barrier();
  std::printf("%s\n", line.c_str());
}

// The group of a half is all that is kept.
void outlives(Group group) {
  const int rank = group.rank();
  group = *group.split(rank / 2);
  std::printf("rank %d: %s\n", rank, sum_in(group, rank).c_str());
}

void other_backend(const Group& group) {
  const Group half = *group.split(group.rank() / 2, 0, ddprun::GroupOptions{.backend = "shm"});
  std::printf("rank %d: %s %s\n", group.rank(), sum_in(half, group.rank()).c_str(), sum_in(group, 1).c_str());
}

// A model per color: the weights after some steps.
std::string trained(const Group& group, int color) {
  torch::manual_seed(static_cast<uint64_t>(color));
  torch::nn::Linear net(4, 3 + color);
  const ddprun::DistributedDataParallel ddp(*net, group);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (int step = 0; step < 10 + 5 * color; ++step) {
    torch::manual_seed(static_cast<uint64_t>(1000 * color + 10 * step + group.rank()));
    sgd.zero_grad();
    net(torch::randn({5, 4})).square().mean().backward();
    sgd.step();
  }
  char text[60];
  std::snprintf(text, sizeof text, "model %d: %a", color, net->weight.sum().item<double>());
  return text;
}

void two_models(const Group& group) {
  const int color = group.rank() / 2;
  std::printf("%s\n", trained(*group.split(color), color).c_str());
}

void report(const Group& group, const std::function<void()>& work) {
  try {
    work();
    std::printf("rank %d: no error\n", group.rank());
  } catch (const ddprun::Error& error) {
    std::printf("rank %d: %d: %s\n", group.rank(), static_cast<int>(error.code()), error.what());
  }
}

void refused(const Group& group) {
  report(group, [&] { group.new_group({}); });
  report(group, [&] { group.new_group({0, 0}); });
  report(group, [&] { group.new_group({0, group.size()}); });
  report(group, [&] { group.new_group({group.rank()}); });
  report(group, [&] { group.split(0, 0, ddprun::GroupOptions{.algorithm = group.rank() == 0 ? "auto" : "ring"}); });
}

const auto kQuick = ddprun::GroupOptions{.timeout = std::chrono::milliseconds(4000)};

const std::map<std::string, std::function<void(Group)>> kActs = {
    {"halves", halves},
    {"some", some},
    {"outlives", outlives},
    {"other_backend", other_backend},
    {"two_models", two_models},
    {"model_0", [](const auto& group) { std::printf("%s\n", trained(group, 0).c_str()); }},
    {"model_1", [](const auto& group) { std::printf("%s\n", trained(group, 1).c_str()); }},
    {"refused", refused},
    {"late",
     [](const auto& group) {
       const Group half = *group.split(group.rank() / 2, 0, kQuick);
       if (group.rank() == 3) std::this_thread::sleep_for(std::chrono::seconds(30));
       sum_in(half, 1);
       sum_in(group, 1);
     }},
    {"late_monitored",
     [](const auto& group) {
       if (group.rank() >= 2) std::this_thread::sleep_for(std::chrono::seconds(30));
       group.monitored_barrier(std::chrono::milliseconds(500));
     }},
    {"throws",
     [](const auto& group) {
       const Group half = *group.split(group.rank() / 2);
       if (group.rank() == 3) throw std::runtime_error("the disk is on fire");
       for (;;) sum_in(half, 1);
     }},
    {"dies",
     [](const auto& group) {
       const Group half = *group.split(group.rank() / 2);
       if (group.rank() == 3) std::_Exit(9);
       for (;;) sum_in(half, 1);
     }},
};

}  // namespace

int main(int, char** arguments) {
  kActs.at(arguments[1])(ddprun::init({.exit_on_error = true}));
}
