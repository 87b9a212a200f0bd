# The target ddprun_nccl: NCCL and the CUDA runtime, if both are found. DDPRUN_NCCL_DIR, if set, must hold
# include/nccl.h and lib/libnccl.so.2. DDPRUN_CUDA_DIR, if set, is one or more folders that must hold the runtime's
# headers (also crt/ and nv/target, from separate wheels) and libcudart.so.13. If unset: the wheels of Torch and those
# that ./ddprun installs, then /usr/local/cuda. If nothing is found, a message says so, and comm_nccl is not built.
# The build needs neither a driver nor nvcc, and does not link libcuda.
include_guard(GLOBAL)
set(DDPRUN_NCCL_DIR "$ENV{DDPRUN_NCCL_DIR}" CACHE STRING
    "NCCL: a folder with include/ and lib/; empty: the wheels, or the system's")
set(DDPRUN_CUDA_DIR "$ENV{DDPRUN_CUDA_DIR}" CACHE STRING
    "CUDA runtime: folders with include/ and lib/; empty: the wheels, or /usr/local/cuda")

set(ddprun_nccl_cache $ENV{XDG_CACHE_HOME})
if(NOT ddprun_nccl_cache)
  set(ddprun_nccl_cache $ENV{HOME}/.cache)
endif()
file(GLOB ddprun_nccl_wheels ${ddprun_nccl_cache}/ddprun/torch-2.11.0/lib/python3*/site-packages/nvidia
     ${ddprun_nccl_cache}/ddprun/nccl-2.28.9/lib/python3*/site-packages/nvidia)
if(DDPRUN_TORCH_DIR)
  list(PREPEND ddprun_nccl_wheels ${DDPRUN_TORCH_DIR}/../nvidia)
endif()

# Sets `out` to the first of <folder>/<one of the names>, over the folders, or to "".
function(ddprun_first_file out folders)
  set(${out} "" PARENT_SCOPE)
  foreach(folder IN LISTS folders)
    foreach(name IN LISTS ARGN)
      if(EXISTS ${folder}/${name})
        get_filename_component(folder ${folder} REALPATH)
        set(${out} ${folder}/${name} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# Sets `out` to the CUDA version of the runtime's headers in the folder, 13000 for 13.0, or to "".
function(ddprun_cuda_number out folder)
  set(number "")
  if(EXISTS ${folder}/include/cuda_runtime_api.h)
    file(STRINGS ${folder}/include/cuda_runtime_api.h number REGEX "^#define CUDART_VERSION +[0-9]+")
    string(REGEX REPLACE "[^0-9]" "" number "${number}")
  endif()
  set(${out} "${number}" PARENT_SCOPE)
endfunction()

set(ddprun_nccl_dirs ${DDPRUN_NCCL_DIR})
set(ddprun_cuda_dirs ${DDPRUN_CUDA_DIR})
if(NOT ddprun_nccl_dirs)
  list(TRANSFORM ddprun_nccl_wheels APPEND /nccl OUTPUT_VARIABLE ddprun_nccl_dirs)
  list(APPEND ddprun_nccl_dirs /usr /usr/local/cuda)
endif()
if(NOT ddprun_cuda_dirs)
  list(TRANSFORM ddprun_nccl_wheels APPEND /cu13 OUTPUT_VARIABLE ddprun_cuda_dirs)
  list(APPEND ddprun_cuda_dirs /usr/local/cuda)
endif()
# All folders must have the same CUDA version, that of the first one.
set(ddprun_cuda_first "")
foreach(folder IN LISTS ddprun_cuda_dirs)
  ddprun_cuda_number(number ${folder})
  if(NOT ddprun_cuda_first)
    set(ddprun_cuda_first "${number}")
  elseif(number AND NOT number EQUAL ddprun_cuda_first)
    message(STATUS "NCCL: left out ${folder}, which is of CUDA ${number}; "
                   "the runtime's headers are of ${ddprun_cuda_first}")
    list(REMOVE_ITEM ddprun_cuda_dirs ${folder})
  endif()
endforeach()

ddprun_first_file(ddprun_nccl_header "${ddprun_nccl_dirs}" include/nccl.h)
ddprun_first_file(ddprun_nccl_library "${ddprun_nccl_dirs}" lib/libnccl.so.2 lib/x86_64-linux-gnu/libnccl.so.2
                  lib/aarch64-linux-gnu/libnccl.so.2 lib64/libnccl.so.2)
ddprun_first_file(ddprun_cuda_header "${ddprun_cuda_dirs}" include/cuda_runtime.h)
ddprun_first_file(ddprun_cuda_crt_header "${ddprun_cuda_dirs}" include/crt/host_config.h)
ddprun_first_file(ddprun_cuda_nv_header "${ddprun_cuda_dirs}" include/cccl/nv/target include/nv/target)
ddprun_first_file(ddprun_cuda_library "${ddprun_cuda_dirs}" lib/libcudart.so.13 lib64/libcudart.so.13)

# DDPRUN_NVRTC: the kernel compiler, which is loaded only at run time. If it is missing: the path that a wheel would
# install.
ddprun_first_file(DDPRUN_NVRTC "${ddprun_cuda_dirs}" lib/libnvrtc.so.13 lib64/libnvrtc.so.13)
if(NOT DDPRUN_NVRTC)
  list(GET ddprun_cuda_dirs 0 DDPRUN_NVRTC)
  string(APPEND DDPRUN_NVRTC /lib/libnvrtc.so.13)
endif()

set(ddprun_nccl_missing "")
foreach(part "nccl_header;include/nccl.h;NCCL" "nccl_library;lib/libnccl.so.2;NCCL"
             "cuda_header;include/cuda_runtime.h;CUDA" "cuda_crt_header;include/crt/host_config.h;CUDA"
             "cuda_nv_header;include/cccl/nv/target;CUDA" "cuda_library;lib/libcudart.so.13;CUDA")
  list(GET part 0 variable)
  list(GET part 1 file)
  list(GET part 2 order)
  if(NOT ddprun_${variable})
    if(DDPRUN_${order}_DIR)
      message(FATAL_ERROR "NCCL: no ${file} in DDPRUN_${order}_DIR=${DDPRUN_${order}_DIR}")
    endif()
    list(APPEND ddprun_nccl_missing ${file})
  endif()
endforeach()

if(ddprun_nccl_missing)
  list(JOIN ddprun_nccl_missing ", " ddprun_nccl_missing)
  message(STATUS "NCCL: no ${ddprun_nccl_missing} found, so comm_nccl is not built; ./ddprun installs them, or set "
                 "DDPRUN_NCCL_DIR and DDPRUN_CUDA_DIR")
  return()
endif()

file(STRINGS ${ddprun_nccl_header} ddprun_nccl_numbers REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^;]*(MAJOR|MINOR|PATCH) +" "" ddprun_nccl_numbers "${ddprun_nccl_numbers}")
string(REPLACE ";" "." DDPRUN_NCCL_VERSION "${ddprun_nccl_numbers}")

# The fakes of the tests need only the headers.
add_library(ddprun_nccl_headers INTERFACE)
foreach(header ${ddprun_nccl_header} ${ddprun_cuda_header} ${ddprun_cuda_crt_header} ${ddprun_cuda_nv_header})
  string(REGEX REPLACE "/(nccl.h|cuda_runtime.h|crt/host_config.h|nv/target)$" "" folder ${header})
  target_include_directories(ddprun_nccl_headers SYSTEM INTERFACE ${folder})
endforeach()

add_library(ddprun_nccl INTERFACE)
target_link_libraries(ddprun_nccl INTERFACE ddprun_nccl_headers ${ddprun_nccl_library} ${ddprun_cuda_library})
get_filename_component(ddprun_nccl_lib ${ddprun_nccl_library} DIRECTORY)
get_filename_component(ddprun_cuda_lib ${ddprun_cuda_library} DIRECTORY)
set(DDPRUN_NCCL_RPATH "${ddprun_nccl_lib};${ddprun_cuda_lib}")
if(DDPRUN_PACKAGE)
  set(DDPRUN_NCCL_RPATH ${ddprun_wheel_nccl})
endif()
message(STATUS "NCCL ${DDPRUN_NCCL_VERSION}: ${ddprun_nccl_library}, ${ddprun_cuda_library}")
