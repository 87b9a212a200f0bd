// A small data set. The option `fault` names the one thing that it does wrong; without it, it keeps the contract.
// docs/conformance.md lists the faults with the check that finds each.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "ddprun/plugin/dataset_options.hpp"

namespace {

constexpr int64_t kValues = 3;

class Faulty final : public ddprun::Dataset {
 public:
  Faulty(std::string fault, int64_t size, uint64_t seed, std::shared_ptr<std::atomic<bool>> train_is_open)
      : fault_(std::move(fault)), size_(size), seed_(seed), train_is_open_(std::move(train_is_open)) {}
  ~Faulty() override {
    if (size_ > 10 && is("shares_splits")) *train_is_open_ = false;
  }

  int64_t size() const override { return size_; }
  const ddprun::Field& input() const override { return input_; }
  const ddprun::Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const override {
    if (!is("any_index")) ddprun::check_indices(indices, size_);
    if (is("changes_locale")) std::setlocale(LC_ALL, "C.UTF-8");
    if (is("leaks_descriptor")) ::dup(2);
    if (is("leaks_memory")) {
      void* volatile kept = std::malloc(100'000);  // volatile: the compiler must keep the call
      (void)kept;
    }
    if (is("crashes")) std::abort();
    auto* input = static_cast<unsigned char*>(inputs);
    auto* const target = static_cast<int64_t*>(targets);
    const std::size_t bytes = kValues * sizeof(float);
    for (std::size_t i = 0; i < indices.size(); ++i, input += bytes) {
      const std::vector<float> values = sample(indices[i], epoch, i);
      std::memcpy(input, values.data(), is("leaves_gaps") ? bytes - sizeof(float) : bytes);
      target[i] = std::abs(indices[i]) % 2;
    }
    if (is("writes_past_end")) *input = 1;
  }

 private:
  bool is(const char* name) const { return fault_ == name; }

  std::vector<float> sample(int64_t index, int64_t epoch, std::size_t place) const {
    std::vector<float> values = {static_cast<float>(index), static_cast<float>(epoch), static_cast<float>(seed_)};
    if (is("counts_calls")) values[0] += static_cast<float>(++calls_);
    if (is("uses_place")) values[0] += static_cast<float>(place);
    if (is("counts_epochs")) {
      if (epoch != last_epoch_) ++epochs_;
      last_epoch_ = epoch;
      values[1] += static_cast<float>(epochs_);
    }
    if (is("uses_process")) values[2] += static_cast<float>(::getpid());
    if (is("shares_splits") && !*train_is_open_) values[0] = 0;
    if (!is("shares_scratch")) return values;
    scratch_ = index;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    values[0] = static_cast<float>(scratch_);
    return values;
  }

  const std::string fault_;
  const int64_t size_;
  const uint64_t seed_;
  const std::shared_ptr<std::atomic<bool>> train_is_open_;
  const ddprun::Field input_{{kValues}, ddprun::ElementType::float32};
  const ddprun::Field target_{{}, ddprun::ElementType::int64};
  const std::vector<std::string> classes_{"even", "odd"};
  mutable std::atomic<int64_t> calls_{0}, epochs_{0}, last_epoch_{0}, scratch_{0};
};

constexpr ddprun_option_spec kOptions[] = {ddprun::text_option("fault", nullptr, "what it breaks")};

ddprun::Splits open(const ddprun::DatasetContext& context) {
  const auto fault = context.options.find("fault");
  const std::string name = fault == context.options.end() ? "none" : fault->second;
  if (name != "any_option") ddprun::DatasetOptions("faulty", context, kOptions);
  const auto train_is_open = std::make_shared<std::atomic<bool>>(true);
  return {std::make_unique<Faulty>(name, 20, context.seed, train_is_open),
          std::make_unique<Faulty>(name, 10, context.seed, train_is_open)};
}

}  // namespace

DDPRUN_DATASET_PLUGIN(open, "faulty", "1.0", "keeps the contract, or breaks it in one way", ddprun::kUndeclaredOptions);
