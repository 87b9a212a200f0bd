# LibTorch for the CPU as a target of our own, ddprun_torch: the wheel's TorchConfig.cmake asks for nvcc, which a machine
# that only trains on CPUs does not have. DDPRUN_TORCH_DIR is the folder that holds include/ and lib/.
if(NOT DDPRUN_TORCH_DIR)
  set(DDPRUN_TORCH_DIR $ENV{DDPRUN_TORCH_DIR})
endif()
set(DDPRUN_TORCH_DIR "${DDPRUN_TORCH_DIR}" CACHE PATH "Folder of LibTorch: .../site-packages/torch, or an unpacked libtorch")

find_path(DDPRUN_TORCH_INCLUDE ATen/ATen.h PATHS ${DDPRUN_TORCH_DIR}/include REQUIRED)
find_library(DDPRUN_TORCH_CPU torch_cpu PATHS ${DDPRUN_TORCH_DIR}/lib REQUIRED)
find_library(DDPRUN_TORCH_C10 c10 PATHS ${DDPRUN_TORCH_DIR}/lib REQUIRED)
get_filename_component(torch_lib ${DDPRUN_TORCH_CPU} DIRECTORY)

file(STRINGS ${DDPRUN_TORCH_INCLUDE}/torch/version.h torch_version REGEX "^#define TORCH_VERSION_M(AJOR|INOR)")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" torch_version "${torch_version}")
if(torch_version VERSION_LESS 2.7)
  message(FATAL_ERROR "Torch ${torch_version} in ${DDPRUN_TORCH_DIR}: ddprun needs 2.7 or later")
endif()

add_library(ddprun_torch INTERFACE)
target_include_directories(ddprun_torch SYSTEM INTERFACE
  ${DDPRUN_TORCH_INCLUDE} ${DDPRUN_TORCH_INCLUDE}/torch/csrc/api/include)
# The wheel's libraries find one another by their own run paths; ld needs telling where the CUDA runtime lies that
# libtorch_cpu names, even for a program that never calls it.
target_link_libraries(ddprun_torch INTERFACE ${DDPRUN_TORCH_CPU} ${DDPRUN_TORCH_C10})
target_link_options(ddprun_torch INTERFACE -Wl,--allow-shlib-undefined)
set(DDPRUN_TORCH_LIB ${torch_lib})
message(STATUS "Torch ${torch_version}: ${torch_lib}")
