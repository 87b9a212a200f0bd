#include "tools/conformance/checks.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/subprocess.hpp"
#include "data/datasets.hpp"
#include "tools/conformance/guarded.hpp"
#include "tools/conformance/process_state.hpp"

namespace ddprun::conformance {
namespace {

using Indices = std::vector<int64_t>;

constexpr int64_t kEpochs = 2;

// The bytes of some samples, one sample after another.
struct Batch {
  std::vector<unsigned char> inputs;
  std::vector<unsigned char> targets;
  std::string outside;  // the buffer around which something was written, or ""
};

// Every byte of the buffers is `fill` before. They are aligned to their element and no further.
Batch fetch(const Dataset& split, std::span<const int64_t> indices, int64_t epoch = 0, unsigned char fill = 0xC3) {
  Guarded inputs(indices.size() * split.input().bytes(), size_of(split.input().type));
  Guarded targets(indices.size() * split.target().bytes(), size_of(split.target().type));
  std::memset(inputs.data(), fill, inputs.bytes());
  std::memset(targets.data(), fill, targets.bytes());
  split.fetch(indices, epoch, inputs.data(), targets.data());
  const char* const outside = !inputs.intact() ? "inputs" : !targets.intact() ? "targets" : "";
  return {inputs.copy(), targets.copy(), outside};
}

// The first sample that differs: "sample 7: another input", or "". Both batches have the samples of `indices`.
std::string difference(const Batch& a, const Batch& b, std::span<const int64_t> indices) {
  const auto differs = [&](const std::vector<unsigned char>& x, const std::vector<unsigned char>& y, std::size_t i) {
    const std::size_t bytes = x.size() / indices.size();
    return std::memcmp(x.data() + i * bytes, y.data() + i * bytes, bytes) != 0;
  };
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const bool input = differs(a.inputs, b.inputs, i);
    if (!input && !differs(a.targets, b.targets, i)) continue;
    return "sample " + std::to_string(indices[i]) + ": another " + (input ? "input" : "target");
  }
  return "";
}

Batch one_by_one(const Dataset& split, const Indices& indices) {
  Batch all;
  for (const int64_t index : indices) {
    const Batch one = fetch(split, {&index, 1});
    std::ranges::copy(one.inputs, std::back_inserter(all.inputs));
    std::ranges::copy(one.targets, std::back_inserter(all.targets));
  }
  return all;
}

// A check of one split; returns what is wrong, or "".
using SplitCheck = std::function<std::string(const Dataset& split, const Indices& indices)>;

class Opened {
 public:
  explicit Opened(const DatasetSettings& settings)
      : settings_(settings), splits_(data::open_splits(*settings.table, settings.context)) {}

  Splits& splits() { return splits_; }

  Indices indices_of(const Dataset& split) const {
    const int64_t count = std::min(split.size(), settings_.samples);
    Indices indices;
    for (int64_t i = 0; i < count; ++i) {
      indices.push_back(count == 1 ? 0 : static_cast<int64_t>(static_cast<double>(split.size() - 1) * i / (count - 1)));
    }
    return indices;
  }

  std::string check(const SplitCheck& body) const {
    for (const auto& [name, split] : {std::pair{"train", splits_.train.get()}, {"test", splits_.test.get()}}) {
      if (split == nullptr) continue;
      const std::string wrong = body(*split, indices_of(*split));
      if (!wrong.empty()) return std::string(name) + ": " + wrong;
    }
    return "";
  }

 private:
  const DatasetSettings& settings_;
  Splits splits_;
};

std::string same_again(const Dataset& split, const Indices& indices) {
  const Batch first = fetch(split, indices);
  const std::string wrong = difference(first, fetch(split, indices), indices);
  return wrong.empty() ? "" : wrong + " at the second fetch";
}

std::string same_in_any_order(const Dataset& split, const Indices& indices) {
  const Batch single = one_by_one(split, indices);
  std::string wrong = difference(single, fetch(split, indices), indices);
  if (!wrong.empty()) return wrong + " in a batch than when it is fetched alone";
  const Indices reversed(indices.rbegin(), indices.rend());
  wrong = difference(one_by_one(split, reversed), fetch(split, reversed), reversed);
  if (!wrong.empty()) return wrong + " in a batch in reverse order";
  const Indices twice = {indices.back(), indices.back()};
  wrong = difference(one_by_one(split, twice), fetch(split, twice), twice);
  return wrong.empty() ? "" : wrong + " if a batch has it twice";
}

std::string same_in_each_epoch(const Dataset& split, const Indices& indices) {
  std::vector<Batch> epochs;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) epochs.push_back(fetch(split, indices, epoch));
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::string wrong =
        difference(epochs[static_cast<std::size_t>(epoch)], fetch(split, indices, epoch), indices);
    if (!wrong.empty()) return wrong + " in epoch " + std::to_string(epoch) + ", fetched again after another epoch";
  }
  return "";
}

std::string same_in_threads(const Dataset& split, const Indices& indices) {
  constexpr std::size_t kThreads = 4;
  std::vector<std::string> wrong(kThreads);
  std::barrier start(static_cast<std::ptrdiff_t>(kThreads));
  // Each thread has another sample at the same time.
  std::vector<Indices> own(kThreads, indices);
  std::vector<Batch> expected;
  for (std::size_t i = 0; i < kThreads; ++i) {
    std::rotate(own[i].begin(), own[i].begin() + static_cast<std::ptrdiff_t>(indices.size() * i / kThreads),
                own[i].end());
    expected.push_back(one_by_one(split, own[i]));
  }
  const auto work = [&](std::size_t number) {
    start.arrive_and_wait();
    try {
      for (int round = 0; round < 3 && wrong[number].empty(); ++round) {
        wrong[number] = difference(expected[number], one_by_one(split, own[number]), own[number]);
      }
    } catch (const std::exception& error) {
      wrong[number] = error.what();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  for (const std::string& text : wrong) {
    if (!text.empty()) return text + " while other threads fetch";
  }
  return "";
}

// The samples of both splits, as text.
std::string content_of(const DatasetSettings& settings) {
  std::string content;
  const std::string wrong = Opened(settings).check([&](const Dataset& split, const Indices& indices) {
    const Batch batch = fetch(split, indices);
    content += std::to_string(split.size()) + " ";
    content.append(batch.inputs.begin(), batch.inputs.end()).append(batch.targets.begin(), batch.targets.end());
    return "";
  });
  return std::to_string(std::hash<std::string>()(content)) + wrong;
}

// The launcher and every rank open the data set, at different times.
std::string same_in_another_process(const DatasetSettings& settings) {
  const std::string first = text_from_subprocess([&] { return content_of(settings); }, std::nullopt);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));  // another second on the clock
  const std::string second = text_from_subprocess([&] { return content_of(settings); }, std::nullopt);
  return first == second ? "" : "another process gets other samples with the same seed and options";
}

std::string writes_inside(const Dataset& split, const Indices& indices) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}, indices.size()}) {
    const std::span<const int64_t> some(indices.data(), std::min(count, indices.size()));
    const Batch batch = fetch(split, some);
    if (!batch.outside.empty()) {
      return "wrote outside the buffer of the " + batch.outside + ", for " + std::to_string(some.size()) + " samples";
    }
  }
  return "";
}

std::string writes_all(const Dataset& split, const Indices& indices) {
  const std::string wrong = difference(fetch(split, indices, 0, 0x00), fetch(split, indices, 0, 0xFF), indices);
  return wrong.empty() ? "" : wrong + " in a buffer with other content: not every byte is written";
}

std::string refuses_other_indices(const Dataset& split, const Indices&) {
  for (const int64_t index : {split.size(), int64_t{-1}}) {
    try {
      fetch(split, {&index, 1});
    } catch (const Error& error) {
      if (error.code() == ExitCode::plugin) return error.what();
      if (std::string(error.what()).find("does not say why") == std::string::npos) continue;
      return "index " + std::to_string(index) + " is refused without a reason";
    }
    return "index " + std::to_string(index) + " of " + std::to_string(split.size()) + " samples is not refused";
  }
  return "";
}

std::string refuses_other_options(const DatasetSettings& right) {
  DatasetSettings settings = right;
  const std::string key = "no_such_option";
  settings.context.options[key] = "1";
  try {
    const Opened opened(settings);
  } catch (const data::DatasetError& error) {
    if (error.key() == "options." + key) return "";
    return "the unknown option " + key + " is refused, but the error is for the key \"" + error.key() +
           "\": " + error.what();
  }
  return "the unknown option " + key + " is not refused";
}

std::string splits_close_alone(const DatasetSettings& settings) {
  Opened opened(settings);
  Splits& splits = opened.splits();
  if (splits.test == nullptr) return "";
  const auto test_only = [&] { return fetch(*splits.test, opened.indices_of(*splits.test)); };
  const Batch before = test_only();
  splits.train.reset();
  const std::string wrong = difference(before, test_only(), opened.indices_of(*splits.test));
  return wrong.empty() ? "" : "test: " + wrong + " after the training split was closed";
}

void open_and_fetch(const DatasetSettings& settings) {
  Opened(settings).check([](const Dataset& split, const Indices& indices) {
    fetch(split, indices);
    return "";
  });
}

std::string changes_no_setting(const DatasetSettings& settings) {
  const ProcessState before = ProcessState::now();
  open_and_fetch(settings);
  const std::string changed = before.difference(ProcessState::now());
  return changed.empty() ? "" : "open or fetch changed " + changed;
}

std::string leaves_nothing_open(const DatasetSettings& settings) {
  constexpr int kTimes = 4;
  constexpr std::ptrdiff_t kHeap = 16'384;  // bytes for each opening
  const auto repeat = [&] {
    for (int i = 0; i < kTimes; ++i) open_and_fetch(settings);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for threads that are about to end
    return held_now();
  };
  const Held before = repeat();  // a library may keep what it opens first
  constexpr Held kLimit{kTimes, kTimes, kTimes * kHeap, std::numeric_limits<std::ptrdiff_t>::max()};
  const std::string left = leak(repeat() - before, kLimit);
  return left.empty() ? "" : left + " after " + std::to_string(kTimes) + " times open, fetch and close";
}

}  // namespace

Suite dataset_suite(const DatasetSettings& settings) {
  Suite suite{.what = "data set", .option = "--option", .open = [&settings] { const Opened opened(settings); }};
  const auto add = [&](const std::string& group, const std::string& name, std::string (*body)(const DatasetSettings&)) {
    suite.checks.push_back({group, group + ": " + name, [&settings, body] { return body(settings); }});
  };
  const auto add_split = [&](const std::string& group, const std::string& name, SplitCheck body) {
    suite.checks.push_back({group, group + ": " + name, [&settings, body] { return Opened(settings).check(body); }});
  };
  add_split("samples", "the same at every fetch", same_again);
  add_split("samples", "the same in every order and batch", same_in_any_order);
  add_split("samples", "the same whenever an epoch is fetched", same_in_each_epoch);
  add_split("samples", "the same in several threads", same_in_threads);
  add("samples", "the same in another process", same_in_another_process);
  add("samples", "the same after the other split is closed", splits_close_alone);
  add_split("buffers", "nothing is written outside", writes_inside);
  add_split("buffers", "every byte is written", writes_all);
  add_split("errors", "an index outside the split is refused", refuses_other_indices);
  add("errors", "an unknown option is refused", refuses_other_options);
  add("process", "settings stay as they are", changes_no_setting);
  add("process", "closing leaves nothing open", leaves_nothing_open);
  return suite;
}

}  // namespace ddprun::conformance
