# The installed programs ddprun::ddprun and ddprun::conformance (the suite that tests a plugin), and
# ddprun_add_conformance_test(<target of ddprun_add_plugin> [ARGS ...])
# A CTest conformance_<kind>_<name>, which runs the suite with these arguments on the plugin. Skipped if the suite is
# (77). If CMAKE_C_FLAGS or CMAKE_CXX_FLAGS have -fsanitize=address or thread, the sanitizer is loaded into the suite.
include_guard()

foreach(name ddprun ddprun-conformance)
  string(REPLACE ddprun- "" target ${name})
  if(NOT TARGET ddprun::${target})
    add_executable(ddprun::${target} IMPORTED GLOBAL)
    set_target_properties(ddprun::${target} PROPERTIES IMPORTED_LOCATION ${PACKAGE_PREFIX_DIR}/bin/${name})
  endif()
endforeach()

function(ddprun_add_conformance_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARGS")
  if(NOT TARGET ${target} OR NOT target MATCHES "^ddprun_(comm|model|dataset)_" OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ddprun_add_conformance_test(${target} ${ARGN}): expected a target of ddprun_add_plugin, "
                        "such as ddprun_comm_mine, and [ARGS ...]")
  endif()
  set(kind ${CMAKE_MATCH_1})
  set(option --${kind})
  if(kind STREQUAL comm)
    set(option --plugin)
  endif()
  string(REGEX REPLACE "^ddprun_" conformance_ test ${target})
  add_test(NAME ${test} COMMAND ddprun::conformance ${option} $<TARGET_FILE:${target}> ${arg_ARGS})
  set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  # The suite was built without a sanitizer, so the runtime must be loaded first.
  if("${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize=[a-z,]*(address|thread)")
    string(SUBSTRING ${CMAKE_MATCH_1} 0 1 letter)
    set(compiler ${CMAKE_CXX_COMPILER})
    if(NOT compiler)
      set(compiler ${CMAKE_C_COMPILER})
    endif()
    execute_process(COMMAND ${compiler} -print-file-name=lib${letter}san.so
                    OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT IS_ABSOLUTE "${runtime}")
      message(FATAL_ERROR "ddprun_add_conformance_test: ${compiler} has no lib${letter}san.so; use gcc")
    endif()
    # The host keeps its memory until it ends, and synchronises its threads without instrumentation. The interceptor of
    # __tls_get_addr mistakes glibc's layout of a plugin's thread_local block, and may end the process.
    string(JOIN : tsan_options ignore_noninstrumented_modules=1 intercept_tls_get_addr=0)
    set_tests_properties(${test} PROPERTIES ENVIRONMENT
      "DDPRUN_NO_DEEPBIND=1;LD_PRELOAD=${runtime};ASAN_OPTIONS=detect_leaks=0;TSAN_OPTIONS=${tsan_options}")
  endif()
endfunction()
