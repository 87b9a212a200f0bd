// The network and the training of PyTorch's C++ example "mnist", on several ranks. docs/library.md shows the lines that
// make it parallel.
//   ddprun launch -n 2 build/ddp_mnist [FOLDER] [EPOCHS]
#include <ddprun/ddp.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

constexpr int64_t kTrainBatch = 64, kTestBatch = 1000, kLogInterval = 100;

struct Net : torch::nn::Module {
  Net()
      : conv1(register_module("conv1", torch::nn::Conv2d(1, 10, 5))),
        conv2(register_module("conv2", torch::nn::Conv2d(10, 20, 5))),
        drop(register_module("drop", torch::nn::Dropout2d())),
        fc1(register_module("fc1", torch::nn::Linear(320, 50))),
        fc2(register_module("fc2", torch::nn::Linear(50, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(drop(conv2(x)), 2));
    x = torch::relu(fc1(x.flatten(1)));
    x = torch::dropout(x, 0.5, is_training());
    return torch::log_softmax(fc2(x), 1);
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout2d drop;
  torch::nn::Linear fc1, fc2;
};

template <class Loader>
void train(int epoch, Net& net, torch::optim::Optimizer& optimizer, Loader& loader, bool print) {
  net.train();
  int64_t step = 0;
  for (auto& batch : loader) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nll_loss(net.forward(batch.data), batch.target);
    loss.backward();
    optimizer.step();
    if (++step % kLogInterval == 0 && print) {
      std::printf("epoch %d, step %ld: loss %.4f\n", epoch, static_cast<long>(step), loss.item<double>());
    }
  }
}

// The sum of the losses, the right answers and the samples.
template <class Loader>
torch::Tensor test(Net& net, Loader& loader) {
  const torch::NoGradGuard no_grad;
  net.eval();
  torch::Tensor sums = torch::zeros(3, torch::kFloat64);
  for (auto& batch : loader) {
    const torch::Tensor output = net.forward(batch.data);
    sums[0] += torch::nll_loss(output, batch.target, {}, torch::Reduction::Sum);
    sums[1] += output.argmax(1).eq(batch.target).sum();
    sums[2] += batch.target.size(0);
  }
  return sums;
}

int main(int count, char** arguments) {
  const std::string folder = count > 1 ? arguments[1] : "data/mnist";
  const int epochs = count > 2 ? std::atoi(arguments[2]) : 10;
  const ddprun::Group group = ddprun::init();
  const bool print = group.rank() == 0;
  torch::manual_seed(1);

  using torch::data::datasets::MNIST;
  const auto open = [&](MNIST::Mode mode) {
    return MNIST(folder, mode)
        .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
        .map(torch::data::transforms::Stack<>());
  };
  auto train_set = open(MNIST::Mode::kTrain), test_set = open(MNIST::Mode::kTest);
  ddprun::DistributedSampler train_sampler(train_set.size().value(), group);
  ddprun::DistributedSampler test_sampler(test_set.size().value(), group, false, 0, ddprun::Last::exact);

  Net net;
  const ddprun::DistributedDataParallel ddp(net, group);
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    train_sampler.set_epoch(epoch);
    auto train_loader = torch::data::make_data_loader(train_set, train_sampler, kTrainBatch / group.size());
    train(epoch, net, optimizer, *train_loader, print);
    auto test_loader = torch::data::make_data_loader(test_set, test_sampler, kTestBatch);
    const torch::Tensor sums = test(net, *test_loader);
    group.allreduce(sums);
    const torch::Tensor means = sums / sums[2];
    if (print) {
      std::printf("epoch %d: test loss %.4f, accuracy %.4f\n", epoch, means[0].item<double>(), means[1].item<double>());
    }
  }
}
