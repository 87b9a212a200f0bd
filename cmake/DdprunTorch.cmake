# The target ddprun_torch, LibTorch for the CPU: the wheel's TorchConfig.cmake needs nvcc, which a machine without GPUs
# does not have. DDPRUN_TORCH_DIR is the folder that holds include/ and lib/; in a clone, cmake/setup/find-torch finds
# it by the rules of ./ddprun.
set(ddprun_torch_oldest 2.7)
set(ddprun_torch_dir "${DDPRUN_TORCH_DIR}")
if(NOT ddprun_torch_dir)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/setup/find-torch
                  OUTPUT_VARIABLE ddprun_torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE ddprun_torch_status)
  if(NOT ddprun_torch_status EQUAL 0)
    message(FATAL_ERROR "LibTorch: none found; run ./ddprun once, which installs it, or set DDPRUN_TORCH_DIR to the "
                        "folder that holds its include/ and lib/")
  endif()
endif()
set(DDPRUN_TORCH_DIR "${ddprun_torch_dir}" CACHE PATH
    "Folder of LibTorch: .../site-packages/torch, or an unpacked libtorch" FORCE)

# Only the folder is cached, so another folder replaces everything of Torch.
foreach(file include/ATen/ATen.h lib/libtorch_cpu.so lib/libc10.so)
  if(NOT EXISTS ${DDPRUN_TORCH_DIR}/${file})
    message(FATAL_ERROR "LibTorch: ${DDPRUN_TORCH_DIR} has no ${file}; set DDPRUN_TORCH_DIR to the folder that holds "
                        "LibTorch's include/ and lib/")
  endif()
endforeach()

# The headers with the version: since 2.10, and before.
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(EXISTS ${DDPRUN_TORCH_DIR}/include/${header})
    file(STRINGS ${DDPRUN_TORCH_DIR}/include/${header} ddprun_torch_numbers
         REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
    if(ddprun_torch_numbers)
      break()
    endif()
  endif()
endforeach()
string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*PATCH +([0-9]+).*" "\\1.\\2.\\3"
       DDPRUN_TORCH_VERSION "${ddprun_torch_numbers}")
if(NOT DDPRUN_TORCH_VERSION MATCHES "^[0-9.]+$" OR DDPRUN_TORCH_VERSION VERSION_LESS ddprun_torch_oldest)
  message(FATAL_ERROR "LibTorch: version '${DDPRUN_TORCH_VERSION}' in ${DDPRUN_TORCH_DIR}; "
                      "ddprun needs ${ddprun_torch_oldest} or later")
endif()

set(DDPRUN_TORCH_LIB ${DDPRUN_TORCH_DIR}/lib)
set(DDPRUN_TORCH_RPATH ${DDPRUN_TORCH_LIB})
if(DDPRUN_PACKAGE)
  set(DDPRUN_TORCH_RPATH ${ddprun_wheel_torch} ${ddprun_bundled})
endif()
add_library(ddprun_torch INTERFACE)
# The C++ that Torch's headers need.
set(DDPRUN_TORCH_CXX 17)
if(DDPRUN_TORCH_VERSION VERSION_GREATER_EQUAL 2.14)
  set(DDPRUN_TORCH_CXX 20)
endif()
target_compile_features(ddprun_torch INTERFACE cxx_std_${DDPRUN_TORCH_CXX})
target_include_directories(ddprun_torch SYSTEM INTERFACE
  ${DDPRUN_TORCH_DIR}/include ${DDPRUN_TORCH_DIR}/include/torch/csrc/api/include)
# The wheel's libraries find each other, and the CUDA runtime that libtorch_cpu needs, by their run paths. ld does not
# follow these, so it must allow undefined symbols, even for a program that never calls CUDA.
target_link_libraries(ddprun_torch INTERFACE ${DDPRUN_TORCH_LIB}/libtorch_cpu.so ${DDPRUN_TORCH_LIB}/libc10.so)
target_link_options(ddprun_torch INTERFACE -Wl,--allow-shlib-undefined)
message(STATUS "Torch ${DDPRUN_TORCH_VERSION}: ${DDPRUN_TORCH_DIR}")
