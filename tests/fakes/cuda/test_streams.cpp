// Streams, events, copies and memory of the fake device: races are detected, and the host does not see results early.
#include "torch_test.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <thread>

namespace ddprun::fake_gpu {
namespace {

using torch::Tensor;

Tensor page_locked(std::int64_t count) {
  return torch::ones({count}, torch::TensorOptions().pinned_memory(true));
}

std::string record_of(const std::function<void()>& body) {
  ddprun_fake_gpu_forget();
  body();
  return ddprun_fake_gpu_record();
}

TEST_CASE("a stream that does not wait for its input is detected") {
  const Tensor made = torch::ones({4}, kGpu);
  const c10::Stream side = another();
  {
    const c10::StreamGuard on_side(side);
    CHECK_THROWS_AS(made.add_(1), Race);
  }
  auto ready = event();
  ready.record(current());
  auto done = event();
  {
    const c10::StreamGuard on_side(side);
    ready.block(side);
    made.add_(1);
    done.record(side);
  }
  CHECK_THROWS_AS(made.sum(), Race);
  done.block(current());
  CHECK(made.sum().item<float>() == 8);
}

TEST_CASE("memory that another stream uses must not be freed without record_stream") {
  for (const bool recorded : {true, false}) {
    CAPTURE(recorded);
    {
      const Tensor made = torch::ones({4}, kGpu);
      auto ready = event();
      ready.record(current());
      const c10::StreamGuard on_side(another());
      ready.block(current());
      const Tensor used = made * 2;
      if (recorded) made.record_stream(current());
    }
    if (recorded) {
      CHECK_NOTHROW(torch::ones({1}, kGpu));
    } else {
      CHECK_THROWS_AS(torch::ones({1}, kGpu), Race);
    }
  }
}

TEST_CASE("a copy to page-locked memory is visible only after the host has waited") {
  const Tensor host = page_locked(3);
  const Tensor device = torch::full({3}, 5., kGpu);
  CHECK(record_of([&] { host.copy_(device, true); }) ==
        "cuda:0 stream 0 copies 12 bytes from cuda:0 to page-locked memory\n");
  auto copied = event();
  copied.record(current());
  CHECK(host.isnan().all().item<bool>());
  copied.synchronize();
  CHECK(host.equal(torch::full({3}, 5.)));
}

TEST_CASE("the source of a copy from page-locked memory must not change until the copy is done") {
  const Tensor host = page_locked(3);
  SUBCASE("unchanged") {
    const Tensor device = host.to(kGpu, true);
    guard().synchronizeDevice(0);
    host.fill_(2);
    CHECK(device.sum().item<float>() == 3);
  }
  SUBCASE("written to") {
    const Tensor device = host.to(kGpu, true);
    host.fill_(2);
    guard().synchronizeDevice(0);
    CHECK_THROWS_AS(device.sum(), Race);
  }
}

TEST_CASE("waits of the host are in the record") {
  const Tensor device = torch::ones({3}, kGpu);
  CHECK(record_of([&] { device.sum().item(); }) == "host waits for cuda:0 stream 0 (aten::_local_scalar_dense)\n");
  CHECK(record_of([&] { device.cpu(); }) ==
        "cuda:0 stream 0 copies 12 bytes from cuda:0 to pageable memory, the host waits\n");
  CHECK(record_of([&] { device.to(kGpu, torch::kHalf); }) == "");
}

TEST_CASE("two devices order their copies themselves") {
  const torch::Device other(torch::kCUDA, 1);
  const Tensor there = torch::ones({3}, kGpu).to(other);
  CHECK(there.device() == other);
  CHECK((there * 2).to(kGpu).sum().item<float>() == 6);
}

TEST_CASE("events have a time if timing is enabled") {
  auto begin = event(true), end = event(true);
  begin.record(current());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  end.record(current());
  CHECK(begin.elapsedTime(end) >= 5);
  auto untimed = event();
  untimed.record(current());
  CHECK_THROWS_AS(begin.elapsedTime(untimed), c10::Error);
}

TEST_CASE("page-locked memory is recognized, and the allocator has statistics") {
  CHECK(torch::ones({3}).pin_memory().is_pinned());
  CHECK_FALSE(torch::ones({3}).is_pinned());
  const c10::DataPtr block = at::getHostAllocator(torch::kCUDA)->allocate(100);
  CHECK(is_loaded);
  CHECK(torch::from_blob(block.get(), {25}).is_pinned());

  auto* const allocator = c10::getDeviceAllocator(torch::kCUDA);
  const auto bytes = [&] { return allocator->getDeviceStats(1).allocated_bytes[0]; };
  const auto before = bytes().current;
  allocator->resetPeakStats(1);
  {
    const Tensor some = torch::ones({1000}, torch::Device(torch::kCUDA, 1));
    CHECK(bytes().current == before + 4000);
  }
  CHECK(bytes().current == before);
  CHECK(bytes().peak >= before + 4000);
  CHECK_THROWS_AS(torch::empty({std::int64_t{1} << 40}, kGpu), c10::OutOfMemoryError);
}

TEST_CASE("backward runs on the streams of forward") {
  const Tensor weight = torch::ones({3}, torch::TensorOptions(kGpu).requires_grad(true));
  const c10::Stream side = another();
  auto ready = event();
  ready.record(current());
  {
    const c10::StreamGuard on_side(side);
    ready.block(side);
    (weight * 2).sum().backward();
  }
  CHECK_THROWS_AS(weight.grad().sum(), Race);
  auto done = event();
  done.record(side);
  done.block(current());
  CHECK(weight.grad().sum().item<float>() == 6);
}

}  // namespace
}  // namespace ddprun::fake_gpu
