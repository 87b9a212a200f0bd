// The functions of NVIDIA's driver that this backend calls. Opened when a rank first asks for a GPU, and never linked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddprun::ucx_backend {

// As in cuda.h: handles are pointers, except for a device and an address on it.
using CudaResult = int;
using CudaDevice = int;
using CudaAddress = unsigned long long;
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaNoMemory = 2;    // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr CudaResult kCudaNotReady = 600;  // CUDA_ERROR_NOT_READY
inline constexpr int kComputeMajor = 75;          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kComputeMinor = 76;          // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr unsigned kNonBlocking = 1;       // CU_STREAM_NON_BLOCKING

struct Driver {
  CudaResult (*init)(unsigned) = nullptr;
  CudaResult (*device)(CudaDevice*, int ordinal) = nullptr;
  CudaResult (*attribute)(int*, int attribute, CudaDevice) = nullptr;
  CudaResult (*retain)(void** context, CudaDevice) = nullptr;  // the primary context
  CudaResult (*release)(CudaDevice) = nullptr;
  CudaResult (*push)(void* context) = nullptr;
  CudaResult (*pop)(void** context) = nullptr;
  CudaResult (*allocate)(CudaAddress*, std::size_t) = nullptr;
  CudaResult (*free)(CudaAddress) = nullptr;
  CudaResult (*create_stream)(void**, unsigned flags) = nullptr;
  CudaResult (*destroy_stream)(void*) = nullptr;
  CudaResult (*query)(void* stream) = nullptr;
  CudaResult (*copy)(CudaAddress to, CudaAddress from, std::size_t, void* stream) = nullptr;
  CudaResult (*load)(void** module, const void* image) = nullptr;
  CudaResult (*unload)(void* module) = nullptr;
  CudaResult (*function)(void** function, void* module, const char* name) = nullptr;
  CudaResult (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                       void** extra) = nullptr;
  CudaResult (*words)(CudaResult, const char**) = nullptr;
};

// Opened and initialised once; after an error the next call tries again. Any thread. Throws
// CommError(CommStatus::unsupported) that names what is missing.
const Driver& driver();

// Throws CommError with the driver's message, unless result is kCudaSuccess: CommStatus::no_memory if the GPU has none
// left, else CommStatus::internal.
void check(CudaResult result, const char* what);

}  // namespace ddprun::ucx_backend
