// One rank of a LibTorch program with its own training loop, for library.py. Rank 0 prints a line of JSON.
//
//     library HOW JOB BATCH STEPS WARM [FILE]
//
// HOW averages the gradients: ddprun; ddprun_views, with gradient_as_bucket_view; gloo and mpi, an allreduce per
// parameter after backward as in PyTorch's example cpp/distributed/dist-mnist.cpp; none. FILE is where the ranks of
// gloo meet. mpi needs PEERS_MPI and mpirun, the others RANK and WORLD_SIZE, from a launcher or absent.
#ifdef PEERS_MPI
#include <mpi.h>
#endif

#include <ddprun/ddp.hpp>
#define USE_C10D_GLOO
#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using torch::Tensor;
namespace nn = torch::nn;

constexpr int64_t kPixels = 28 * 28, kClasses = 10;

nn::Sequential simplenet() {
  return nn::Sequential(nn::Flatten(), nn::Linear(kPixels, 256), nn::ReLU(), nn::Linear(256, kClasses));
}

// The network of examples/ddp_mnist.
nn::Sequential mnist() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 5).stride(2)), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(8, 16, 5).stride(2)), nn::ReLU(), nn::Flatten(),
                        nn::Linear(256, kClasses));
}

struct Job {
  nn::Sequential net;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

Job job_of(const std::string& name) {
  Job job;
  if (name == "simplenet") {
    job.net = simplenet();
    job.optimizer = std::make_unique<torch::optim::Adam>(job.net->parameters(), 1e-3);
  } else if (name == "mnist") {
    job.net = mnist();
    job.optimizer =
        std::make_unique<torch::optim::SGD>(job.net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  } else {
    throw std::invalid_argument("JOB: expected simplenet or mnist");
  }
  return job;
}

// How the ranks average.
struct Ranks {
  int rank = 0, size = 1;
  std::function<void(nn::Sequential&)> prepare = [](nn::Sequential&) {};
  std::function<void(nn::Sequential&)> after_backward = [](nn::Sequential&) {};
  std::function<void()> end = [] {};
};

int variable(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

Ranks with_ddprun(bool views) {
  // A shared_ptr, because a function must be copyable.
  const auto group = std::make_shared<ddprun::Group>(ddprun::init({.exit_on_error = true}));
  const auto ddp = std::make_shared<std::optional<ddprun::DistributedDataParallel>>();
  return {.rank = group->rank(),
          .size = group->size(),
          .prepare =
              [=](nn::Sequential& net) {
                ddp->emplace(*net, *group, ddprun::DistributedDataParallelOptions{.gradient_as_bucket_view = views});
              },
          .end = [=] { ddp->reset(); }};
}

Ranks with_gloo(const std::string& file) {
  const int rank = variable("RANK", 0), size = variable("WORLD_SIZE", 1);
  const auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  const auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::FileStore>(file, size), rank,
                                                                 size, options);
  return {.rank = rank, .size = size, .after_backward = [=](nn::Sequential& net) {
            std::vector<c10::intrusive_ptr<c10d::Work>> works;
            for (const Tensor& parameter : net->parameters()) {
              std::vector<Tensor> gradient{parameter.grad()};
              works.push_back(group->allreduce(gradient));
            }
            for (const auto& work : works) work->wait();
            for (const Tensor& parameter : net->parameters()) parameter.grad().div_(size);
          }};
}

Ranks with_mpi() {
#ifdef PEERS_MPI
  MPI_Init(nullptr, nullptr);  // by default, MPI ends the job on an error
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return {.rank = rank,
          .size = size,
          .after_backward =
              [=](nn::Sequential& net) {
                for (const Tensor& parameter : net->parameters()) {
                  Tensor gradient = parameter.grad();
                  MPI_Allreduce(MPI_IN_PLACE, gradient.data_ptr<float>(), static_cast<int>(gradient.numel()), MPI_FLOAT,
                                MPI_SUM, MPI_COMM_WORLD);
                }
                for (const Tensor& parameter : net->parameters()) parameter.grad().div_(size);
              },
          .end = [] { MPI_Finalize(); }};
#else
  throw std::invalid_argument("HOW: this program was built without MPI");
#endif
}

Ranks ranks_of(const std::string& how, const std::string& file) {
  if (how == "ddprun" || how == "ddprun_views") return with_ddprun(how == "ddprun_views");
  if (how == "gloo") return with_gloo(file);
  if (how == "mpi") return with_mpi();
  if (how == "none") return {};
  throw std::invalid_argument("HOW: expected ddprun, ddprun_views, gloo, mpi or none");
}

// Seconds of each step. The data are in memory: time goes into the network, the optimizer and the ranks only.
std::vector<double> train(Job& job, Ranks& ranks, int64_t batch, int64_t steps) {
  constexpr int kBatches = 16;
  std::vector<std::pair<Tensor, Tensor>> batches;
  torch::manual_seed(100 + ranks.rank);
  for (int i = 0; i < kBatches; ++i) {
    batches.emplace_back(torch::randn({batch, 1, 28, 28}), torch::randint(kClasses, {batch}, torch::kInt64));
  }
  ranks.prepare(job.net);
  std::vector<double> seconds;
  auto begin = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < steps; ++step) {
    const auto& [images, targets] = batches[static_cast<std::size_t>(step % kBatches)];
    job.optimizer->zero_grad();
    const Tensor loss = nn::functional::cross_entropy(job.net->forward(images), targets);
    loss.backward();
    ranks.after_backward(job.net);
    job.optimizer->step();
    loss.item<float>();
    const auto now = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(now - begin).count());
    begin = now;
  }
  return seconds;
}

// Equal for all ways to average, up to rounding.
double checksum(nn::Sequential& net) {
  const torch::NoGradGuard no_grad;
  double sum = 0;
  for (const Tensor& parameter : net->parameters()) sum += parameter.abs().sum().item<double>();
  return sum;
}

int run(int count, char** arguments) {
  if (count < 6) throw std::invalid_argument("expected HOW JOB BATCH STEPS WARM [FILE]");
  const int64_t batch = std::stoll(arguments[3]), steps = std::stoll(arguments[4]), warm = std::stoll(arguments[5]);
  if (batch < 1 || warm < 0 || steps <= warm) throw std::invalid_argument("BATCH, STEPS or WARM is out of range");
  Ranks ranks = ranks_of(arguments[1], count > 6 ? arguments[6] : "");
  torch::set_num_threads(1);
  torch::manual_seed(1);  // the same weights on all ranks
  Job job = job_of(arguments[2]);
  std::vector<double> seconds = train(job, ranks, batch, steps);
  seconds.erase(seconds.begin(), seconds.begin() + warm);
  double total = 0;
  for (const double each : seconds) total += each;
  std::sort(seconds.begin(), seconds.end());
  if (ranks.rank == 0) {
    std::printf("{\"step\": %.9g, \"steps_per_second\": %.9g, \"checksum\": %.9g}\n", seconds[seconds.size() / 2],
                static_cast<double>(seconds.size()) / total, checksum(job.net));
    std::fflush(stdout);
  }
  ranks.end();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "library: %s\n", error.what());
    return 2;
  }
}
