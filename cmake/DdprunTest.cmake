# For every test: the folder of real data. ThreadSanitizer must ignore only libraries that were built without it.
include(DdprunPython)
set(DDPRUN_TEST_ENVIRONMENT DDPRUN_TEST_DATA=${DDPRUN_TEST_DATA})
if(DDPRUN_SANITIZE MATCHES thread)
  string(JOIN ":" tsan_options ignore_noninstrumented_modules=1 second_deadlock_stack=1
         suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp)
  # UCX hooks glibc's madvise, which a thread calls at its end, and locks a mutex there: for ThreadSanitizer this thread
  # no longer exists.
  list(APPEND DDPRUN_TEST_ENVIRONMENT TSAN_OPTIONS=${tsan_options} UCX_MEM_EVENTS=n)
endif()
# UCX 1.22's cma tests a peer by reading 16 of its bytes into the iovec that describes the target; the kernel has copied
# the iovec by then, but a sanitizer reads it again.
if(DDPRUN_SANITIZE)
  list(APPEND DDPRUN_TEST_ENVIRONMENT UCX_TLS=^posix,cma)
endif()

# ddprun_add_test(<module> SOURCES ... [USES libraries] [NEEDS targets] [LABELS ...] [TIMEOUT seconds])
# A doctest program test_<module>; one ctest entry. It runs in the build folder and prints why it skips tests. Exit
# status 77: all tests were skipped.
function(ddprun_add_test module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;USES;NEEDS;LABELS")
  set(target test_${module})
  add_executable(${target} ${arg_SOURCES} ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${arg_USES} doctest::doctest ddprun_flags)
  target_compile_definitions(${target} PRIVATE DDPRUN_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               DDPRUN_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(arg_NEEDS)
    add_dependencies(${target} ${arg_NEEDS})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  add_test(NAME ${module} COMMAND ${target})
  set_tests_properties(${module} PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}"
                                      ENVIRONMENT "${DDPRUN_TEST_ENVIRONMENT}")
endfunction()
