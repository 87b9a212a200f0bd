// Gradient accumulation and clipping in a training loop of one's own. Each rank splits its part of a batch into
// micro-batches, and the ranks exchange gradients once a step. The result is the same for each world size that
// divides 60.
//   ddprun launch -n 2 build/ddp_accumulate [STEPS]
#include <ddprun/ddp.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using torch::Tensor;

constexpr int64_t kBatch = 240, kMicroBatches = 4, kFeatures = 16;  // kBatch: the global batch

// Whether all ranks have the same weights.
bool same_weights(const torch::nn::Module& net, const ddprun::Group& group) {
  const torch::NoGradGuard no_grad;
  const Tensor smallest = torch::nn::utils::parameters_to_vector(net.parameters());
  const Tensor largest = smallest.clone();
  group.allreduce(smallest, ddprun::Op::min);
  group.allreduce(largest, ddprun::Op::max);
  return torch::equal(smallest, largest);
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 300;
  const ddprun::Group group = ddprun::init();
  torch::manual_seed(1);  // the same data on all ranks
  const Tensor truth = torch::randn(kFeatures) / std::sqrt(kFeatures);

  torch::nn::Sequential net(torch::nn::Linear(kFeatures, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  ddprun::DistributedDataParallel ddp(*net, group);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int step = 1; step <= steps; ++step) {
    const Tensor all = torch::randn({kBatch, kFeatures});
    const auto inputs = all.tensor_split(group.size())[group.rank()].chunk(kMicroBatches);
    Tensor loss = torch::zeros({});
    const auto backward = [&](const Tensor& input) {
      const Tensor target = torch::sin(input.matmul(truth));
      const Tensor part = torch::mse_loss(net->forward(input).squeeze(1), target) / kMicroBatches;
      part.backward();
      loss += part.detach();
    };

    optimizer.zero_grad();
    {
      const auto held = ddp.no_sync();  // only add to the gradients of this rank
      for (int64_t micro = 0; micro + 1 < kMicroBatches; ++micro) backward(inputs[micro]);
    }
    backward(inputs.back());  // averages the sum of all over the ranks
    const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);  // the same on all ranks
    optimizer.step();

    if (step % 100 == 0) {
      group.allreduce(loss, ddprun::Op::avg);
      if (group.rank() == 0) std::printf("step %d: loss %.4f, gradient norm %.4f\n", step, loss.item<double>(), norm);
    }
  }
  const bool same = same_weights(*net, group);
  if (group.rank() == 0) std::printf("weights: %s on all ranks\n", same ? "equal" : "different");
  return same ? 0 : 1;
}
