#include "support/torch_test.hpp"

#include <set>

#include "comm/joined.hpp"
#include "comm/plugin_backend.hpp"
#include "support/error_of.hpp"
#include "train/reduce/bucketed_reducer.hpp"
#include "train/reduce/gradient_hooks.hpp"
#include "train/small_models.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;


torch::Tensor input_of(int rank, int step) {
  return torch::arange(8, torch::kFloat32).view({2, 4}) * 0.1 + rank * 0.7 - step * 0.2;
}

// A model with its reducer; equal on all ranks.
struct Replica {
  explicit Replica(CommBackend& backend, ReducerOptions options = {}, bool with_unused = false) {
    torch::manual_seed(7);
    model = std::make_shared<TwoLayers>(with_unused);
    parameters = trainable_parameters(*model);
    reducer = std::make_unique<BucketedReducer>(comm::Group(backend, kDeadline), parameters, options);
    hooks = std::make_unique<GradientHooks>(*reducer, parameters);
  }
  // `more`: added to the loss, if defined
  void step(const torch::Tensor& input, const torch::Tensor& more = {}) {
    forget_gradients(*model);
    (more.defined() ? loss_of(*model, input) + more : loss_of(*model, input)).backward();
    reducer->finalize();
  }
  std::shared_ptr<TwoLayers> model;
  std::vector<NamedTensor> parameters;
  std::unique_ptr<BucketedReducer> reducer;
  std::shared_ptr<void> hooks;
};

// The expected gradients, averaged over `size` ranks, computed without a reducer.
std::vector<torch::Tensor> expected_gradients(int size, int step) {
  std::vector<torch::Tensor> sums;
  for (int rank = 0; rank < size; ++rank) {
    torch::manual_seed(7);
    TwoLayers model;
    loss_of(model, input_of(rank, step)).backward();
    for (std::size_t i = 0; i < model.parameters().size(); ++i) {
      const torch::Tensor gradient = model.parameters()[i].grad() / size;
      if (rank == 0) {
        sums.push_back(gradient.clone());
      } else {
        sums[i] += gradient;
      }
    }
  }
  return sums;
}

// Three steps: the first with one bucket, the others with the rebuilt buckets.
void check_averages(testing::Rank& rank, ReducerOptions options) {
  const auto backend = comm::join_good(rank);
  Replica replica(*backend, options);
  for (int step = 0; step < 3; ++step) {
    replica.step(input_of(rank.rank(), step));
    const auto expected = expected_gradients(rank.size(), step);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      require(torch::allclose(replica.parameters[i].tensor.grad(), expected[i], 1e-5, 1e-7),
              "gradient of " + replica.parameters[i].name + " in step " + std::to_string(step));
    }
  }
  require(replica.reducer->execution().algorithm == "slots", "algorithm");
  require(replica.reducer->execution().transport == "memory", "transport");
}

TEST_CASE("gradients become the average over the ranks, in one bucket and in many") {
  for (const std::size_t cap : {std::size_t{1} << 20, std::size_t{100}, std::size_t{1}}) {
    CAPTURE(cap);
    ReducerOptions options;
    options.bucket_bytes = cap;
    options.first_bucket_bytes = cap;
    for (const int size : {1, 2, 3}) {
      CAPTURE(size);
      CHECK(failures(run_ranks(size, As::processes, kDeadline,
                               [&](testing::Rank& rank) { check_averages(rank, options); })) == "");
    }
  }
}

TEST_CASE("gradients are views into the backend's memory, and stay valid when buckets are rebuilt") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Replica replica(*backend);
          replica.step(input_of(rank.rank(), 0));  // rebuilds
          for (const auto& parameter : replica.parameters) {
            require(torch::isfinite(parameter.tensor.grad()).all().item<bool>(), "finite: " + parameter.name);
          }
          replica.step(input_of(rank.rank(), 1));
          const auto base = replica.parameters[0].tensor.grad().storage().data_ptr().get();
          for (const auto& parameter : replica.parameters) {
            require(parameter.tensor.grad().storage().data_ptr().get() == base, "one memory: " + parameter.name);
          }
        })) == "");
}

TEST_CASE("one rank does not copy its gradients") {
  const auto backend = comm::single_process_backend();
  for (const bool views : {true, false}) {
    CAPTURE(views);
    Replica replica(*backend, {.gradient_as_bucket_view = views});
    replica.step(input_of(0, 0));
    replica.step(input_of(0, 1));
    std::set<const void*> memory;
    for (const auto& parameter : replica.parameters) {
      memory.insert(parameter.tensor.grad().storage().data_ptr().get());
      CHECK(parameter.tensor.grad()._version() == 0);  // nothing was copied into it
    }
    CHECK(memory.size() == replica.parameters.size());
  }
}

TEST_CASE("a parameter without a gradient is named") {
  const auto backend = comm::single_process_backend();
  Replica replica(*backend, {}, true);
  CHECK(testing::error_of([&] { replica.step(input_of(0, 0)); }) ==
        "1: no gradient in this step for \"spare.weight\", \"spare.bias\": the loss does not depend on these "
        "parameters; let the model use them, or set strategy.find_unused_parameters = true");
}

TEST_CASE("find_unused_parameters: a gradient counts as zero on a rank that has none, and stays away if none has it") {
  ReducerOptions options;
  options.find_unused_parameters = true;
  options.bucket_bytes = options.first_bucket_bytes = 64;
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Replica replica(*backend, options, true);
          const torch::Tensor& spare = replica.model->spare->weight;
          for (int step = 0; step < 5; ++step) {
            replica.step(input_of(rank.rank(), step),
                         step % 2 == 1 && rank.rank() == 0 ? spare.sum() : torch::Tensor());
            require(replica.model->fc1->weight.grad().abs().sum().item<float>() > 0, "used gradient");
            require(!replica.model->spare->bias.grad().defined(), "a gradient that no rank has");
            require(spare.grad().defined() == (step % 2 == 1), "a gradient that one rank has in odd steps");
            if (step % 2 == 0) continue;
            require((spare.grad() == 0.5).all().item<bool>(), "rank 1 counts as zero");
            spare.mutable_grad().fill_(5);  // the next step reuses its memory
          }
        })) == "");
}

TEST_CASE("a second backward in one step is refused") {
  const auto backend = comm::single_process_backend();
  Replica replica(*backend);
  loss_of(*replica.model, input_of(0, 0)).backward();
  CHECK(testing::error_of([&] { replica.reducer->add(0); }) ==
        "1: parameter \"fc1.weight\" got its gradient twice in one step: run one backward per step");
}

TEST_CASE("finalize reports the buckets that it waits for, in order") {
  std::vector<int> waited;
  ReducerOptions options;
  options.bucket_bytes = options.first_bucket_bytes = 1;
  const auto backend = comm::single_process_backend();
  Replica replica(*backend, options);
  replica.reducer->set_on_wait([&](int bucket) { waited.push_back(bucket); });
  replica.step(input_of(0, 0));
  CHECK(waited == std::vector<int>{0});  // the order of gradients is not known yet
  waited.clear();
  replica.step(input_of(0, 1));
  CHECK(waited == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a peer that leaves in the middle of a step ends finalize with an error") {
  ReducerOptions options;
  options.bucket_bytes = options.first_bucket_bytes = 64;
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
    const auto backend = comm::join_good(rank);
    Replica replica(*backend, options);
    replica.step(input_of(rank.rank(), 0));
    if (rank.rank() == 1) return;
    replica.step(input_of(0, 1));
  });
  CHECK(outcomes[1].ok());
  CHECK(outcomes[0].end == testing::Outcome::End::threw);
  CHECK(outcomes[0].number == 5);
}

}  // namespace
}  // namespace ddprun::train
