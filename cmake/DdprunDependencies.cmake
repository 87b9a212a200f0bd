# Finds every library once. Torch: cmake/DdprunTorch.cmake.
find_package(Threads REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG 1.6 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Boost REQUIRED COMPONENTS filesystem)
# One header, without a CMake file.
find_path(DDPRUN_MUSTACHE_DIR kainjow/mustache.hpp REQUIRED)
add_library(ddprun_mustache INTERFACE)
target_include_directories(ddprun_mustache SYSTEM INTERFACE ${DDPRUN_MUSTACHE_DIR})
# GCC's own library reads the symbols of a call stack, for Boost.Stacktrace. It is not on the search path of Clang.
execute_process(COMMAND gcc -print-file-name=libbacktrace.a OUTPUT_VARIABLE backtrace_library
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND gcc -print-file-name=include/backtrace.h OUTPUT_VARIABLE backtrace_header
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
add_library(ddprun_backtrace INTERFACE)
target_link_libraries(ddprun_backtrace INTERFACE ${backtrace_library})
target_compile_definitions(ddprun_backtrace INTERFACE BOOST_STACKTRACE_USE_BACKTRACE
                           BOOST_STACKTRACE_BACKTRACE_INCLUDE_FILE="${backtrace_header}")
if(DDPRUN_TESTS)
  find_package(doctest REQUIRED)
endif()
if(DDPRUN_TORCH)
  include(DdprunTorch)
endif()
include(DdprunNccl)
