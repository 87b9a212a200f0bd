#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "data/loader.hpp"
#include "ddprun/error.hpp"

using namespace ddprun;
using namespace ddprun::data;
using Batches = std::vector<std::vector<int64_t>>;

namespace {

// Sample i is {i, i + 0.5} with target i. A hook sees every index before it is fetched, on the thread that fetches.
class FakeDataset : public Dataset {
 public:
  int64_t size() const override { return 1'000'000; }
  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  void fetch(std::span<const int64_t> indices, int64_t, void* inputs, void* targets) const override {
    auto* input = static_cast<float*>(inputs);
    auto* target = static_cast<int64_t*>(targets);
    for (const int64_t index : indices) {
      if (hook) hook(index);
      input[0] = static_cast<float>(index);
      input[1] = static_cast<float>(index) + 0.5f;
      input += 2;
      *target++ = index;
    }
  }

  std::function<void(int64_t)> hook;

 private:
  const Field input_{{2}, ElementType::float32};
  const Field target_{{}, ElementType::int64};
  const std::vector<std::string> classes_;
};

// Fetches wait at this gate. Its deadline ends a test that never opens it.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    if (!changed_.wait_for(lock, deadline, [this] { return open_; })) throw std::runtime_error("gate never opened");
  }
  // Returns when `count` fetches have arrived at the gate.
  void await_waiting(int count) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, deadline, [&] { return waiting_ >= count; })) throw std::runtime_error("no fetches");
  }

 private:
  static constexpr std::chrono::seconds deadline{30};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

std::vector<int64_t> counted(int64_t from, int64_t count) {
  std::vector<int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), from);
  return indices;
}

// The indices in a batch; checks that the inputs match them.
std::vector<int64_t> indices_in(const Batch& batch) {
  const auto* targets = static_cast<const int64_t*>(batch.targets);
  const auto* inputs = static_cast<const float*>(batch.inputs);
  std::vector<int64_t> indices(targets, targets + batch.size);
  bool whole = true;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto index = static_cast<float>(indices[i]);
    whole = whole && inputs[2 * i] == index && inputs[2 * i + 1] == index + 0.5f;
  }
  REQUIRE(whole);
  return indices;
}

Batches read_epoch(Loader& loader, const Batches& batches) {
  loader.start(batches, 0);
  Batches read;
  for (Batch batch; loader.next(batch);) read.push_back(indices_in(batch));
  return read;
}

const std::vector<int> worker_counts = {0, 1, 2, 7};

}  // namespace

TEST_CASE("batches arrive in the order of the indices, whatever the number of workers") {
  FakeDataset dataset;
  dataset.hook = [](int64_t index) {
    if (index % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(index % 50));
  };
  const Batches batches = cut_batches(counted(100, 1'003), 10, false);
  for (const int workers : worker_counts) {
    for (const int prefetch : {1, 3}) {
      CAPTURE(workers);
      CAPTURE(prefetch);
      const auto loader = make_loader(dataset, {workers, prefetch});
      CHECK(read_epoch(*loader, batches) == batches);
      CHECK(read_epoch(*loader, batches) == batches);
    }
  }
}

TEST_CASE("very many tiny batches arrive in order") {
  const FakeDataset dataset;
  const Batches batches = cut_batches(counted(0, 50'000), 1, false);
  for (const int workers : worker_counts) {
    CAPTURE(workers);
    CHECK(read_epoch(*make_loader(dataset, {workers, 2}), batches) == batches);
  }
}

TEST_CASE("batches larger than a chunk, of different sizes, and empty ones are complete") {
  const FakeDataset dataset;
  const Batches batches = {{}, counted(0, 20'000), {}, {}, counted(5, 1), counted(100'000, 9'999), {}};
  for (const int workers : worker_counts) {
    CAPTURE(workers);
    CHECK(read_epoch(*make_loader(dataset, {workers, 2}), batches) == batches);
  }
}

TEST_CASE("an epoch without batches ends immediately, as does a loader that was never started") {
  const FakeDataset dataset;
  for (const int workers : worker_counts) {
    const auto loader = make_loader(dataset, {workers, 2});
    Batch batch;
    CHECK_FALSE(loader->next(batch));
    loader->start({}, 0);
    CHECK_FALSE(loader->next(batch));
    CHECK_FALSE(loader->next(batch));
  }
}

TEST_CASE("an exception in a fetch reaches next() at its batch, and the other batches still arrive") {
  FakeDataset dataset;
  dataset.hook = [](int64_t index) {
    if (index == 55) throw Error(ExitCode::usage, "sample 55 is bad");
  };
  const Batches batches = cut_batches(counted(0, 2'000), 10, false);  // enough to reuse every buffer
  for (const int workers : worker_counts) {
    CAPTURE(workers);
    const auto loader = make_loader(dataset, {workers, 2});
    for (int epoch = 0; epoch < 2; ++epoch) {
      loader->start(batches, 0);
      Batch batch;
      for (std::size_t i = 0; i < batches.size(); ++i) {
        if (i == 5) {
          CHECK_THROWS_WITH_AS(loader->next(batch), "sample 55 is bad", Error);
        } else {
          REQUIRE(loader->next(batch));
          CHECK(indices_in(batch) == batches[i]);
        }
      }
      CHECK_FALSE(loader->next(batch));
    }
  }
}

TEST_CASE("a batch is unchanged until the next call, however far the workers are ahead") {
  FakeDataset dataset;
  std::atomic<int> fetched{0};
  dataset.hook = [&](int64_t) { ++fetched; };
  const auto loader = make_loader(dataset, {2, 2});
  const Batches batches = cut_batches(counted(0, 1'000'000), 5'000, false);  // 80 kB each: four are fetched ahead
  loader->start(batches, 0);
  Batch batch;
  for (int i = 0; i < 50; ++i) {
    REQUIRE(loader->next(batch));
    // The workers stop here: all slots but this one are full.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (fetched < (i + 1 + 2) * 5'000 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    CHECK(indices_in(batch) == batches[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("buffers are aligned, never null, and reused") {
  const FakeDataset dataset;
  const auto loader = make_loader(dataset, {1, 2});
  loader->start(cut_batches(counted(0, 500'000), 5'000, false), 0);
  std::vector<void*> inputs;
  for (Batch batch; loader->next(batch);) {
    REQUIRE(batch.inputs != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(batch.inputs) % 64 == 0);
    CHECK(reinterpret_cast<uintptr_t>(batch.targets) % 64 == 0);
    inputs.push_back(batch.inputs);
  }
  REQUIRE(inputs.size() == 100);
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  CHECK(inputs.size() <= 4);
  loader->start({{}}, 0);
  Batch batch;
  REQUIRE(loader->next(batch));
  CHECK(batch.size == 0);
  CHECK(batch.inputs != nullptr);
  CHECK(batch.targets != nullptr);
}

TEST_CASE("a second epoch allocates no memory") {
  const FakeDataset dataset;
  const auto loader = make_loader(dataset, {0, 1});
  Batch first, second;
  loader->start({counted(0, 1'000)}, 0);
  REQUIRE(loader->next(first));
  loader->start({counted(0, 900)}, 0);
  REQUIRE(loader->next(second));
  CHECK(second.inputs == first.inputs);
  CHECK(second.targets == first.targets);
}

TEST_CASE("workers prefetch") {
  FakeDataset dataset;
  Gate gate;
  dataset.hook = [&](int64_t) { gate.pass(); };
  const auto loader = make_loader(dataset, {2, 1});
  loader->start({{0}, {1}, {2}}, 0);
  gate.await_waiting(2);
  gate.open();
  Batch batch;
  for (int64_t i = 0; i < 3; ++i) {
    REQUIRE(loader->next(batch));
    CHECK(indices_in(batch) == std::vector<int64_t>{i});
  }
}

TEST_CASE("ready() reports whether the next batch is complete") {
  FakeDataset dataset;
  Gate gate;
  dataset.hook = [&](int64_t index) {
    gate.pass();
    if (index == 2) throw Error(ExitCode::usage, "sample 2 is bad");
  };
  const auto loader = make_loader(dataset, {1, 1});
  CHECK_FALSE(loader->ready());
  loader->start({{0}, {1}, {2}}, 0);
  gate.await_waiting(1);
  CHECK_FALSE(loader->ready());
  gate.open();
  const auto becomes_ready = [&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!loader->ready() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    return loader->ready();
  };
  Batch batch;
  for (int64_t i = 0; i < 2; ++i) {
    CHECK(becomes_ready());
    REQUIRE(loader->next(batch));
    CHECK(indices_in(batch) == std::vector<int64_t>{i});
  }
  gate.await_waiting(3);
  CHECK_THROWS_AS(loader->next(batch), Error);  // ready() does not report an error
  CHECK_FALSE(loader->ready());
  loader->start({{2}, {}}, 0);
  gate.await_waiting(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(loader->ready());
}

TEST_CASE("without workers nothing is ready before next()") {
  const FakeDataset dataset;
  const auto loader = make_loader(dataset, {0, 1});
  loader->start({{0}}, 0);
  CHECK_FALSE(loader->ready());
}

TEST_CASE("batches use the memory of the caller's allocator, and it is freed") {
  const FakeDataset dataset;
  for (const int workers : {0, 2}) {
    std::vector<std::shared_ptr<std::byte>> given;
    {
      const auto source = [&](std::size_t bytes) {
        given.emplace_back(new std::byte[bytes], std::default_delete<std::byte[]>());
        return given.back();
      };
      const auto loader = make_loader(dataset, {workers, 1, source});
      loader->start({{0}, {1}, {2}}, 0);
      for (Batch batch; loader->next(batch);) {
        indices_in(batch);
        CHECK(
            std::any_of(given.begin(), given.end(), [&](const auto& memory) { return memory.get() == batch.inputs; }));
        CHECK(
            std::any_of(given.begin(), given.end(), [&](const auto& memory) { return memory.get() == batch.targets; }));
      }
    }
    for (const auto& memory : given) CHECK(memory.use_count() == 1);
  }
}

TEST_CASE("a loader can be destroyed while its workers are busy, and they stop within the batch") {
  FakeDataset dataset;
  Gate gate;
  std::atomic<int64_t> fetched{0};
  dataset.hook = [&](int64_t index) {
    if (index % 1'000'000 == 0) gate.pass();
    if (index % 1'000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // 2 s a batch
    ++fetched;
  };
  auto loader = make_loader(dataset, {2, 1});
  loader->start({counted(0, 1'000'000), counted(1'000'000, 1'000'000)}, 0);
  gate.await_waiting(2);
  gate.open();
  loader.reset();
  CHECK(fetched < 2'000'000);
}

TEST_CASE("a new epoch can start in the middle of another with busy workers, and gives only its batches") {
  FakeDataset dataset;
  dataset.hook = [](int64_t index) {
    if (index % 1'000 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  };
  for (const int workers : worker_counts) {
    CAPTURE(workers);
    const auto loader = make_loader(dataset, {workers, 2});
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      const Batches batches = cut_batches(counted(epoch * 40'000, 40'000), 4'000 + epoch, false);
      loader->start(batches, 0);
      Batch batch;
      for (int64_t i = 0; i < epoch % 5; ++i) {
        REQUIRE(loader->next(batch));
        REQUIRE(indices_in(batch) == batches[static_cast<std::size_t>(i)]);
      }
    }
    const Batches last = cut_batches(counted(7, 50'000), 12'345, false);
    CHECK(read_epoch(*loader, last) == last);
  }
}

TEST_CASE("an error that next() did not throw does not reach the next epoch") {
  FakeDataset dataset;
  dataset.hook = [](int64_t index) {
    if (index == 1) throw std::runtime_error("sample 1 is bad");
  };
  for (const int workers : worker_counts) {
    const auto loader = make_loader(dataset, {workers, 2});
    for (int epoch = 0; epoch < 10; ++epoch) {
      loader->start({{0}, {1}, {1}}, 0);
      Batch batch;
      REQUIRE(loader->next(batch));
      CHECK(read_epoch(*loader, {{2}, {3}, {4}}) == Batches{{2}, {3}, {4}});
    }
  }
}

TEST_CASE("invalid numbers of workers and batches are refused") {
  const FakeDataset dataset;
  CHECK_THROWS_WITH_AS(make_loader(dataset, {-1, 2}), "-1 data workers: expected 0 or more", Error);
  CHECK_THROWS_WITH_AS(make_loader(dataset, {1, 0}), "prefetch of 0: expected 1 or more", Error);
  CHECK_NOTHROW(make_loader(dataset, {0, 0}));
  CHECK(read_epoch(*make_loader(dataset, {2, INT32_MAX}), {{1}, {2}}) == Batches{{1}, {2}});  // allocates lazily
}

TEST_CASE("cut_batches keeps every index in order, or drops the short last batch") {
  CHECK(cut_batches({5, 6, 7, 8, 9}, 2, false) == Batches{{5, 6}, {7, 8}, {9}});
  CHECK(cut_batches({5, 6, 7, 8, 9}, 2, true) == Batches{{5, 6}, {7, 8}});
  CHECK(cut_batches({5, 6, 7, 8}, 2, true) == Batches{{5, 6}, {7, 8}});
  CHECK(cut_batches({5}, 2, true).empty());
  CHECK(cut_batches({}, 2, false).empty());
  CHECK(cut_batches({5, 6}, INT64_MAX, false) == Batches{{5, 6}});
  CHECK_THROWS_WITH_AS(cut_batches({5}, 0, false), "batch size of 0: expected 1 or more", Error);
}
