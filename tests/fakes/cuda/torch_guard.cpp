// Torch's CUDA devices, streams and events on the fake GPU.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>

#include "gpu.hpp"
#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

constexpr int kStreams = 32;  // of a pool, as c10/cuda has them
constexpr int kMostDevices = 64;

thread_local std::array<std::int64_t, kMostDevices> current_streams{};

struct TorchEvent {
  std::shared_ptr<Event> event = make_event();
  std::int64_t number = 0;
  bool has_time = false;
  bool is_recorded = false;
};

TorchEvent& event_of(void* event) {
  return *static_cast<TorchEvent*>(event);
}

std::string name_of(const TorchEvent& event) {
  return "event " + std::to_string(event.number);
}

c10::Stream stream_with(std::int64_t handle, c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, device), handle);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }

  c10::Device getDevice() const override { return {c10::kCUDA, static_cast<c10::DeviceIndex>(current_device())}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_cuda() && device.index() < device_count(), "CUDA error: invalid device ordinal ", device);
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) set_current_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count()); }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    const int index = device < 0 ? current_device() : device;
    note("host waits for cuda:" + std::to_string(index));
    synchronize_device(index);
  }

  c10::Stream getStream(c10::Device device) const override {
    const c10::DeviceIndex index = device.index() < 0 ? getDevice().index() : device.index();
    return stream_with(current_streams.at(index), index);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream_with(0, device.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    static std::array<std::atomic<int>, kMostDevices> next{};
    const int device_index = device.index() < 0 ? current_device() : device.index();
    const int number = next.at(device_index)++ % kStreams + 1;
    return stream_with(handle_in_pool(device_index, number), static_cast<c10::DeviceIndex>(device_index));
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return getStreamFromGlobalPool(device, priority != 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current_streams.at(stream.device_index()) = stream.id();
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return reinterpret_cast<void*>(stream.id()); }
  bool queryStream(const c10::Stream& stream) const override { return is_done(stream_of(stream)); }
  void synchronizeStream(const c10::Stream& stream) const override {
    note("host waits for " + fake_gpu::name_of(stream_of(stream)));
    synchronize(stream_of(stream));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag flag) const override {
    static std::atomic<std::int64_t> events{0};
    if (*event == nullptr)
      *event = new TorchEvent{.number = ++events, .has_time = flag == c10::EventFlag::BACKEND_DEFAULT};
    TorchEvent& one = event_of(*event);
    one.event = make_event();  // a wait for an earlier record keeps that record
    fake_gpu::record(*one.event, stream_of(stream));
    one.is_recorded = true;
    note(fake_gpu::name_of(stream_of(stream)) + " records " + name_of(one));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    fake_gpu::block(stream_of(stream), *event_of(event).event);
    note(fake_gpu::name_of(stream_of(stream)) + " waits for " + name_of(event_of(event)));
  }
  bool queryEvent(void* event) const override { return event == nullptr || is_done(*event_of(event).event); }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    note("host waits for " + name_of(event_of(event)));
    synchronize(*event_of(event).event);
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    for (void* const event : {from, to}) {
      TORCH_CHECK(event_of(event).has_time, "Both events must be created with argument 'enable_timing=True'.");
      TORCH_CHECK(queryEvent(event), "CUDA error: device not ready");
    }
    return elapsed(*event_of(from).event, *event_of(to).event);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<TorchEvent*>(event);
  }

  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    used_on(memory.get(), stream_of(stream));
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

}  // namespace
}  // namespace ddprun::fake_gpu
