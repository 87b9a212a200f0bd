// A network whose gradients are sent as factors of rank 2.
//   ddprun launch -n 2 build/ddp_powersgd [STEPS]
#include <ddprun/ddp.hpp>

#include <cstdio>
#include <cstdlib>

#include "power_sgd.hpp"

using torch::Tensor;

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 200;
  const ddprun::Group group = ddprun::init();
  torch::nn::Sequential net(torch::nn::Linear(8, 256), torch::nn::ReLU(), torch::nn::Linear(256, 1));
  ddprun::DistributedDataParallel ddp(*net, group);
  PowerSgdOptions options;
  options.matrix_approximation_rank = 2;
  options.start_iter = 10;
  ddp.register_comm_hook(power_sgd_hook(options));
  torch::optim::Adam adam(net->parameters(), 0.005);

  torch::manual_seed(static_cast<uint64_t>(group.rank()) + 1);
  for (int step = 1; step <= steps; ++step) {
    const Tensor inputs = torch::randn({64, 8});
    adam.zero_grad();
    const Tensor loss = torch::mse_loss(net->forward(inputs), inputs.cumsum(1).sin().sum(1, true));
    loss.backward();
    adam.step();
    if (group.rank() == 0 && (step == 1 || step % 50 == 0)) {
      std::printf("step %d: loss %.4f\n", step, loss.item<double>());
    }
  }
}
