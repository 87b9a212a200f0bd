// Ranks with different numbers of batches. Rank r reads r + 1 "files" of random length. Without join, the rank with the
// most batches would wait for the others until its timeout.
//   ddprun launch -n 2 build/ddp_uneven [EPOCHS]
#include <ddprun/ddp.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

using torch::Tensor;

constexpr int64_t kFeatures = 8;

// The batches of this rank: inputs [samples, kFeatures].
std::vector<Tensor> batches_of(int rank) {
  torch::manual_seed(static_cast<uint64_t>(rank) + 1);
  std::vector<Tensor> batches;
  for (int file = 0; file <= rank; ++file) {
    const Tensor inputs = torch::randn({torch::randint(100, 400, {1}).item<int64_t>(), kFeatures});
    for (const Tensor& batch : inputs.split(32)) batches.push_back(batch);
  }
  return batches;
}

// What the net is to learn.
Tensor target_of(const Tensor& inputs) {
  return inputs.cumsum(1).sin().sum(1, true);
}

int main(int count, char** arguments) {
  const int epochs = count > 1 ? std::atoi(arguments[1]) : 20;
  const ddprun::Group group = ddprun::init();
  torch::nn::Sequential net(torch::nn::Linear(kFeatures, 128), torch::nn::ReLU(), torch::nn::Linear(128, 1));
  ddprun::DistributedDataParallel ddp(*net, group);
  torch::optim::Adam adam(net->parameters(), 0.005);

  const std::vector<Tensor> batches = batches_of(group.rank());
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const Tensor totals = torch::zeros({2}, torch::kFloat64);  // loss times samples, samples
    const auto loop = [&] {
      for (const Tensor& batch : batches) {
        adam.zero_grad();
        const Tensor loss = torch::mse_loss(net->forward(batch), target_of(batch));
        loss.backward();  // ranks that have no batches left take part
        adam.step();
        totals[0] += loss.detach() * batch.size(0);
        totals[1] += batch.size(0);
      }
    };
    // A rank without batches steps too, so that Adam has the same state on all ranks in the next epoch.
    ddp.join(loop, {.after_backward = [&] { adam.step(); }});
    group.allreduce(totals);
    if (group.rank() == 0 && (epoch == 1 || epoch % 10 == 0)) {
      std::printf("epoch %d: loss %.4f\n", epoch, totals[0].item<double>() / totals[1].item<double>());
    }
  }
  std::printf("rank %d: %zu batches in each epoch\n", group.rank(), batches.size());
}
