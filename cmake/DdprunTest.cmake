# For every test: the folder of real data. ThreadSanitizer must ignore only libraries that were built without it. No
# sanitizer may intercept __tls_get_addr (CMakePresets.json says so for ASan): where a thread_local block of a plugin
# begins 16 bytes after the begin of a page, gcc 12's runtimes read these 16 bytes as a header of glibc 2.19. Then TSan
# may end the process, and the leak check may fail with "LeakSanitizer has encountered a fatal error".
include(DdprunPython)
set(DDPRUN_TEST_ENVIRONMENT DDPRUN_TEST_DATA=${DDPRUN_TEST_DATA})
if(DDPRUN_SANITIZE MATCHES thread)
  string(JOIN ":" tsan_options ignore_noninstrumented_modules=1 intercept_tls_get_addr=0 second_deadlock_stack=1
         allow_addr2line=1
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

# ddprun_add_test(<module> [TORCH] SOURCES ... [USES libraries] [NEEDS targets] [LABELS ...] [TIMEOUT seconds])
# A doctest program test_<module>; one ctest entry. It runs in the build folder and prints why it skips tests. Exit
# status 77: all tests were skipped. TORCH: its sources begin with support/torch_test.hpp. Labels: ./run-tests --torch runs
# torch_versions, and ./run-tests runs torch_quick with other versions of Torch; targets of these names build them.
function(ddprun_add_test module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "TIMEOUT" "SOURCES;USES;NEEDS;LABELS")
  set(target test_${module})
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${arg_USES} ddprun_test_support doctest::doctest ddprun_flags)
  if(arg_TORCH)
    target_precompile_headers(${target} REUSE_FROM ddprun_torch_test_support)
    # GCC instantiates all templates of Torch's precompiled headers again in each unit: 7 s.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${DDPRUN_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  else()
    target_precompile_headers(${target} REUSE_FROM ddprun_test_support)
  endif()
  if(arg_NEEDS)
    add_dependencies(${target} ${arg_NEEDS})
  endif()
  foreach(label IN ITEMS torch_versions torch_quick)
    if(label IN_LIST arg_LABELS)
      add_dependencies(${label} ${target})
    endif()
  endforeach()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  add_test(NAME ${module} COMMAND ${target})
  set_tests_properties(${module} PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}"
                                      ENVIRONMENT "${DDPRUN_TEST_ENVIRONMENT}")
endfunction()

# ddprun_add_gpu_test(<module> <what ddprun_add_test takes>...): a test of training on fake GPUs. With a Torch before 2.11
# (core/train/device/streams.cpp), it only says that it is skipped.
function(ddprun_add_gpu_test module)
  if(DDPRUN_TORCH_VERSION VERSION_LESS 2.11)
    add_test(NAME ${module} COMMAND sh -c "echo 'skipped: with Torch before 2.11, ddprun trains on CPUs only'; exit 77")
    set_tests_properties(${module} PROPERTIES SKIP_RETURN_CODE 77 LABELS torch_versions)
    return()
  endif()
  ddprun_add_test(${module} TORCH ${ARGN} LABELS torch_versions)
  target_compile_definitions(test_${module} PRIVATE DDPRUN_FAKE_TORCH_CUDA="$<TARGET_FILE:fake_torch_cuda>")
endfunction()
