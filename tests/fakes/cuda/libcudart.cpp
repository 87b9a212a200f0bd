// A fake libcudart.so.13: memory is host memory, streams and events are those of gpu.hpp, and a test sets the errors
// (fake.hpp).
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "cudart.hpp"
#include "fakes/cuda/fake.hpp"

extern "C" ddprun::testing::Fake* ddprun_fake() {
  static auto* const fake = new ddprun::testing::Fake;
  return fake;
}

namespace {

namespace gpu = ddprun::fake_gpu;
using namespace ddprun::fake_cudart;
using ddprun::testing::Fake;

Fake& fake() {
  return *ddprun_fake();
}

thread_local cudaError_t last = cudaSuccess;
thread_local std::string race;

template <class Handle>
Handle next_handle(int& counter) {
  const std::lock_guard lock(fake().mutex);
  return reinterpret_cast<Handle>(static_cast<std::intptr_t>(++counter));
}

std::string text(const char* kind, const void* handle) {
  return std::string(kind) + std::to_string(number_of(handle));
}

// By handle; an event that was never recorded is complete.
std::shared_ptr<gpu::Event> event_of(cudaEvent_t event) {
  static auto& events = *new std::map<std::int64_t, std::shared_ptr<gpu::Event>>;
  const std::lock_guard lock(fake().mutex);
  auto& one = events[number_of(event)];
  if (one == nullptr) one = gpu::make_event();
  return one;
}

void wait_while_it_hangs() {
  while (fake().gpu_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// `work` on a stream, which reads or writes device memory.
template <class Work>
cudaError_t run(cudaStream_t stream, const void* memory, size_t size, bool writes, const char* what, Work work) {
  return answer([&] {
    gpu::begin(stream_of(stream));
    gpu::access(stream_of(stream), memory, size, writes, what);
    work();
  });
}

cudaError_t copy(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost) return failed(cudaErrorInvalidMemcpyDirection);
  const bool writes = kind == cudaMemcpyHostToDevice;
  return run(stream, writes ? to : from, size, writes, "cudaMemcpy", [=] { std::memcpy(to, from, size); });
}

// Above the numbers that tests use and those of Torch; each belongs to a device, as in gpu.hpp.
cudaError_t make_stream(cudaStream_t* stream, int priority) {
  static std::atomic<int> streams{0};
  const std::int64_t number = (gpu::current_device() + 1) * 1000 + 500 + streams++ % 500;
  *stream = reinterpret_cast<cudaStream_t>(static_cast<std::intptr_t>(number));
  fake().record("cudaStreamCreate device " + std::to_string(gpu::current_device()) + " priority " +
                std::to_string(priority));
  return cudaSuccess;
}

}  // namespace

cudaError_t ddprun::fake_cudart::failed(cudaError_t error) {
  return last = error;
}

cudaError_t ddprun::fake_cudart::failed(const gpu::Race& found) {
  race = found.what();
  return failed(cudaErrorIllegalAddress);
}

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = fake().driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = fake().runtime;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake().devices;
  return fake().devices == 0 ? failed(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = gpu::current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake().devices) return failed(cudaErrorInvalidDevice);
  gpu::set_current_device(device);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= fake().devices) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int size, int device) {
  std::snprintf(bus, static_cast<size_t>(size), "%s", ddprun::testing::fake_bus_id(device).c_str());
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  fake().record("cudaDeviceSynchronize");
  wait_while_it_hangs();
  return answer([] { gpu::synchronize_device(gpu::current_device()); });
}
cudaError_t cudaGetLastError() {
  return std::exchange(last, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorIllegalAddress: return race.c_str();
    default: return "a CUDA error";
  }
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  return make_stream(stream, priority);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return make_stream(stream, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  fake().record(text("stream ", stream) + text(" waits for event ", event));
  return answer([&] { gpu::block(stream_of(stream), *event_of(event)); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  wait_while_it_hangs();
  return answer([&] { gpu::synchronize(stream_of(stream)); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static int events = 0;
  *event = next_handle<cudaEvent_t>(events);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  fake().record(text("stream ", stream) + text(" records event ", event));
  return answer([&] { gpu::record(*event_of(event), stream_of(stream)); });
}
// Odd events are the first of a pair: the caller's earlier work, which does not hang.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  bool is_done = false;
  const cudaError_t result = answer([&] { is_done = gpu::is_done(*event_of(event)); });
  if (result != cudaSuccess) return result;
  const bool hangs = fake().gpu_hangs && number_of(event) % 2 == 0;
  return is_done && !hangs ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  wait_while_it_hangs();
  return answer([&] { gpu::synchronize(*event_of(event)); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return answer([&] { *milliseconds = static_cast<float>(gpu::elapsed(*event_of(from), *event_of(to))); });
}

cudaError_t cudaMalloc(void** memory, size_t size) {
  if (size > ddprun::testing::fake_memory(gpu::current_device())) return failed(cudaErrorMemoryAllocation);
  return answer([&] {
    *memory = std::aligned_alloc(512, (size + 511) / 512 * 512);
    gpu::allocated(*memory, size, stream_of(nullptr));
  });
}
// Waits for the device, as CUDA does, so that no stream uses the memory any more.
cudaError_t cudaFree(void* memory) {
  wait_while_it_hangs();
  return answer([memory] {
    gpu::synchronize_device(gpu::current_device());
    gpu::freed(memory, [memory] { std::free(memory); });
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t stream) {
  return run(stream, memory, size, true, "cudaMemset", [=] { std::memset(memory, value, size); });
}
cudaError_t cudaMemset(void* memory, int value, size_t size) {
  return cudaMemsetAsync(memory, value, size, nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy(to, from, size, kind, stream);
}
// A small copy to the device returns when it has read host memory, perhaps before the copy is complete.
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  constexpr size_t kSmall = 64 * 1024;
  const cudaError_t result = copy(to, from, size, kind, nullptr);
  const bool returns_early = kind == cudaMemcpyHostToDevice && size <= kSmall;
  return result == cudaSuccess && !returns_early ? cudaStreamSynchronize(nullptr) : result;
}
}
