// libcudart.so.13 without a GPU: streams and events are names, memory is the host's.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "fake.hpp"

extern "C" ddprun::testing::Fake* ddprun_fake() {
  static auto* const fake = new ddprun::testing::Fake;
  return fake;
}

namespace {

using ddprun::testing::Fake;

Fake& fake() {
  return *ddprun_fake();
}

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

// Handles are small numbers, so that a test can tell them apart.
template <class Handle>
Handle next_handle(int& counter) {
  const std::lock_guard lock(fake().mutex);
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(++counter));
}

std::string text(const char* kind, const void* handle) {
  return std::string(kind) + std::to_string(reinterpret_cast<uintptr_t>(handle));
}

}  // namespace

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
  return fake().devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int size, int device) {
  std::snprintf(bus, static_cast<size_t>(size), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  fake().record("cudaDeviceSynchronize");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return std::exchange(last, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "a CUDA error";
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  static int streams = 100;  // beyond those that a test names itself
  *stream = next_handle<cudaStream_t>(streams);
  fake().record("cudaStreamCreate device " + std::to_string(current) + " priority " + std::to_string(priority));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream == reinterpret_cast<cudaStream_t>(99) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  fake().record(text("stream ", stream) + text(" waits for event ", event));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static int events = 0;
  *event = next_handle<cudaEvent_t>(events);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  fake().record(text("stream ", stream) + text(" records event ", event));
  return cudaSuccess;
}
// Odd events are the first of a pair: what the caller had queued, which is done.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!fake().gpu_hangs || reinterpret_cast<uintptr_t>(event) % 2 == 1) return cudaSuccess;
  return last = cudaErrorNotReady;
}

cudaError_t cudaMalloc(void** memory, size_t size) {
  *memory = std::malloc(size);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t size) {
  std::memset(memory, value, size);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
}
