// A training of a user, which `ddprun compare` records. Variables: NAP, seconds of sleep before each forward; STEPS;
// BACKEND, that of GroupOptions; SILENT: it logs nothing.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "ddprun/ddp.hpp"

namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

int main() {
  const ddprun::Group group = ddprun::init({.backend = variable("BACKEND", ""), .exit_on_error = true});
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(64, 32), torch::nn::ReLU(), torch::nn::Linear(32, 10));
  ddprun::DistributedDataParallel ddp(*net, group);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  const auto loss_of_a_batch = [&] {
    return torch::nn::functional::cross_entropy(net->forward(torch::randn({8, 64})), torch::randint(10, {8}));
  };
  for (int step = 0; step < std::stoi(variable("STEPS", "12")); ++step) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(variable("NAP", "0"))));
    sgd.zero_grad();
    torch::Tensor loss;
    {
      const auto held = ddp.no_sync();
      loss = loss_of_a_batch();
      loss.backward();
    }
    loss_of_a_batch().backward();
    sgd.step();
    if (variable("SILENT", "").empty()) ddp.log(loss.item<double>(), 16);
  }
}
