// A user's program in mixed precision. The test starts it as ranks: ACT. It prints what the test compares.
#include "ddprun/amp.hpp"

#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "ddprun/ddp.hpp"
#include "ddprun/error.hpp"

namespace {

using torch::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string text_of(const Tensor& tensor) {
  std::string text;
  const Tensor values = tensor.detach().to(torch::kFloat64).reshape({-1});
  for (int64_t i = 0; i < values.numel(); ++i) {
    char word[40];
    std::snprintf(word, sizeof word, " %a", values[i].item<double>());
    text += word;
  }
  return text;
}

const ddprun::GradScalerOptions kQuick{.init_scale = 8, .growth_interval = 3};

// Twelve steps of one parameter, three of which overflow. The same in amp_parity.py.
void scaler(const ddprun::Group&) {
  Tensor w = torch::arange(1.0F, 5.0F).set_requires_grad(true);
  torch::optim::SGD sgd({w}, torch::optim::SGDOptions(0.1).momentum(0.9));
  ddprun::GradScaler scaler(torch::kCPU, kQuick);
  for (int step = 0; step < 12; ++step) {
    Tensor x = torch::arange(4.0F) * 0.25 + step;
    if (step == 3 || step == 7 || step == 8) x[1] = kInfinity;
    sgd.zero_grad();
    scaler.scale((w * x).sum()).backward();
    if (step % 2 == 1) {
      scaler.unscale_(sgd);
      w.mutable_grad().clamp_(-5, 5);
    }
    scaler.step(sgd);
    scaler.update();
    std::printf("%d %g%s\n", step, scaler.get_scale(), text_of(w).c_str());
  }
  for (const auto& [name, value] : scaler.state_dict()) std::printf("%s %g\n", name.c_str(), value);
}

// The dtypes and gradients of a layer under autocast. The same in amp_parity.py.
void autocast(const ddprun::Group&) {
  for (const auto dtype : {torch::kBFloat16, torch::kFloat16}) {
    Tensor weight = (torch::arange(12.0F).reshape({3, 4}) / 7).set_requires_grad(true);
    const Tensor input = torch::arange(8.0F).reshape({2, 4}) / 3;
    Tensor loss;
    {
      const ddprun::Autocast half(torch::kCPU, dtype);
      const Tensor output = torch::nn::functional::linear(input, weight);
      TORCH_CHECK(output.scalar_type() == dtype, "the output is ", output.scalar_type());
      {
        const ddprun::Autocast off(torch::kCPU, dtype, false);
        TORCH_CHECK(torch::matmul(input, weight.t()).scalar_type() == torch::kFloat32, "not off");
      }
      loss = torch::mse_loss(output, torch::ones({2, 3}));
    }
    TORCH_CHECK(torch::matmul(input, input.t()).scalar_type() == torch::kFloat32, "autocast stays");
    loss.backward();
    std::printf("%s%s%s\n", c10::toString(loss.scalar_type()), text_of(loss).c_str(), text_of(weight.grad()).c_str());
  }
}

// Data of one rank overflow in steps 2 and 4, in step 4 within no_sync(): all ranks skip both, and stay equal.
void ddp(const ddprun::Group& group) {
  torch::manual_seed(static_cast<uint64_t>(group.rank()));
  torch::nn::Linear net(3, 2);
  ddprun::DistributedDataParallel ddp(*net, group);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  ddprun::GradScaler scaler(torch::kCPU, kQuick);
  const auto backward = [&](bool overflow) {
    Tensor input = torch::randn({4, 3});
    if (overflow && group.rank() == group.size() - 1) input[0][0] = kInfinity;
    Tensor loss;
    {
      const ddprun::Autocast half(torch::kCPU, torch::kFloat16);
      loss = net(input).square().mean();
    }
    scaler.scale(loss).backward();
  };
  std::string line;
  for (int step = 0; step < 6; ++step) {
    sgd.zero_grad();
    {
      const auto held = ddp.no_sync();
      backward(step == 4);
    }
    backward(step == 2);
    line += scaler.step(sgd) ? "+" : "-";
    scaler.update();
  }
  std::printf("rank %d: %s %g%s\n", group.rank(), line.c_str(), scaler.get_scale(), text_of(net->weight).c_str());
}

// Each rank has gradients of its own; one overflows.
void own_gradients(const ddprun::Group& group) {
  Tensor w = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD sgd({w}, 0.5);
  ddprun::GradScalerOptions options = kQuick;
  options.group = group;
  ddprun::GradScaler scaler(torch::kCPU, options);
  std::string line;
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    scaler.scale(w.sum() * (step == 1 && group.rank() == 0 ? kInfinity : 1)).backward();
    line += scaler.step(sgd) ? "+" : "-";
    scaler.update();
  }
  std::printf("rank %d: %s %g%s\n", group.rank(), line.c_str(), scaler.get_scale(), text_of(w).c_str());
}

// A scaler that continues from the state of another.
void state(const ddprun::Group&) {
  ddprun::GradScaler first(torch::kCPU, kQuick), second;
  Tensor w = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD sgd({w}, 0.5);
  const auto step = [&](ddprun::GradScaler& scaler) {
    sgd.zero_grad();
    scaler.scale(w.sum()).backward();
    scaler.step(sgd);
    scaler.update();
  };
  step(first);
  step(first);
  auto numbers = first.state_dict();
  numbers["epoch"] = 3;
  second.load_state_dict(numbers);
  step(second);
  std::printf("%g, then %g\n", first.get_scale(), second.get_scale());
  ddprun::GradScaler off(torch::kCPU, {.enabled = false});
  step(off);
  std::printf("off: %g, %zu numbers, %g\n", off.get_scale(), off.state_dict().size(), w[0].item<double>());
}

void misuse(const ddprun::Group&) {
  Tensor w = torch::ones({2}, torch::requires_grad()), half = torch::ones({2}, torch::kFloat16).set_requires_grad(true);
  torch::optim::SGD sgd({w}, 0.5), of_half({half}, 0.5);
  const auto report = [](const std::function<void()>& work) {
    try {
      work();
      std::printf("no error\n");
    } catch (const ddprun::Error& error) {
      std::printf("%d: %s\n", static_cast<int>(error.code()), error.what());
    }
  };
  ddprun::GradScaler scaler(torch::kCPU, kQuick);
  report([&] { scaler.update(); });
  report([&] { scaler.step(sgd); });
  scaler.scale(w.sum()).backward();
  scaler.unscale_(sgd);
  report([&] { scaler.unscale_(sgd); });
  scaler.step(sgd);
  report([&] { scaler.step(sgd); });
  report([&] { scaler.unscale_(sgd); });
  half.mutable_grad() = torch::ones_like(half);
  report([&] { scaler.step(of_half); });
  report([&] { scaler.load_state_dict({{"scale", 3}}); });
  report([&] { ddprun::GradScaler(torch::kCPU, {.growth_factor = 0.5}); });
  report([&] { ddprun::Autocast(torch::kCPU, torch::kFloat64); });
}

// Prints what is accepted.
void out_of_range(const ddprun::Group&) {
  const double nan = std::nan("");
  const auto refused = [](const std::string& name, const std::function<void()>& work) {
    try {
      work();
      std::printf("accepted: %s\n", name.c_str());
    } catch (const ddprun::Error& error) {
      if (error.code() != ddprun::ExitCode::usage) std::printf("%s: %s\n", name.c_str(), error.what());
    }
  };
  const auto refused_options = [&](const std::string& name, const ddprun::GradScalerOptions& options) {
    refused(name, [&] { ddprun::GradScaler(torch::kCPU, options); });
  };
  for (const double scale : {double{kInfinity}, 1e39, nan, 0.0, 1e-60, -1.0}) {
    refused_options("init_scale", {.init_scale = scale});
    ddprun::GradScaler scaler;
    auto state = scaler.state_dict();
    state["scale"] = scale;
    refused("scale of a state", [&] { scaler.load_state_dict(state); });
  }
  for (const double factor : {double{kInfinity}, nan, 1.0, 0.0}) refused_options("growth", {.growth_factor = factor});
  for (const double factor : {double{kInfinity}, nan, 1.0, 0.0}) refused_options("backoff", {.backoff_factor = factor});
  refused_options("interval", {.growth_interval = 0});
  for (const double steps : {double{kInfinity}, nan, -1.0, 1e12}) {
    ddprun::GradScaler scaler;
    auto state = scaler.state_dict();
    state["_growth_tracker"] = steps;
    refused("tracker of a state", [&] { scaler.load_state_dict(state); });
  }
}

const std::map<std::string, std::function<void(const ddprun::Group&)>> kActs = {
    {"scaler", scaler}, {"autocast", autocast},        {"ddp", ddp}, {"own_gradients", own_gradients}, {"state", state},
    {"misuse", misuse}, {"out_of_range", out_of_range}};

}  // namespace

int main(int, char** arguments) {
  const ddprun::Group group = ddprun::init({.exit_on_error = true});
  torch::set_num_threads(1);
  kActs.at(arguments[1])(group);
}
