# Language, warnings, sanitizers and output folders, for every target of this project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

include(GNUInstallDirs)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# The plugins of the prefix, in a folder with the version of their ABI, and those of the build.
set(ddprun_header ${PROJECT_SOURCE_DIR}/core/include/ddprun/plugin/comm_plugin.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ddprun_header})
file(STRINGS ${ddprun_header} DDPRUN_PLUGIN_FOLDER REGEX "^#define DDPRUN_PLUGIN_FOLDER ")
string(REGEX REPLACE ".*\"(.+)\".*" "\\1" DDPRUN_PLUGIN_FOLDER "${DDPRUN_PLUGIN_FOLDER}")
set(DDPRUN_PLUGIN_INSTALL lib/ddprun/${DDPRUN_PLUGIN_FOLDER})
set(DDPRUN_PLUGIN_OUTPUT ${CMAKE_BINARY_DIR}/${DDPRUN_PLUGIN_INSTALL})

add_library(ddprun_flags INTERFACE)
# No other library replaces a function of libddprun, so calls within it need no indirection.
target_compile_options(ddprun_flags INTERFACE -Wall -Wextra -Wpedantic
                       $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>
                       $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-braces;-Wno-missing-designated-field-initializers>)
if(DDPRUN_SANITIZE)
  # For all targets of this project: a race or an overflow ends the process. The types of functions are not checked,
  # because the table of a plugin may be written in C.
  add_compile_options(-fsanitize=${DDPRUN_SANITIZE} -fno-sanitize=function -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DDPRUN_SANITIZE})
  string(REGEX MATCH "thread" threads "${DDPRUN_SANITIZE}")
  add_compile_definitions(DDPRUN_SANITIZED $<$<BOOL:${threads}>:DDPRUN_TSAN>)  # for tests
  # With Clang, a plugin uses the sanitizer of the program. Last on the command line, it overrides --no-undefined.
  link_libraries(-Wl,-z,undefs)
endif()
# Optimization of code that mostly waits, for processes and files: it compiles in half the time.
set(DDPRUN_WAITS $<$<CONFIG:Release>:-O1>)
if(DDPRUN_SANITIZE)
  set(DDPRUN_WAITS -O0)
endif()
# Of the code that the fuzz targets (tests/fuzz/) read their inputs with.
set(DDPRUN_FUZZED "")
if(DDPRUN_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  set(DDPRUN_FUZZED -fsanitize=fuzzer-no-link)
endif()

# ccache: these settings make precompiled headers cacheable and use paths relative to this tree, so a second clone or
# build folder does not compile the same files again.
find_program(DDPRUN_CCACHE ccache)
if(DDPRUN_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DDPRUN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  if(DDPRUN_SANITIZE)
    # Without this, debug information depends on the folder of the clone.
    add_compile_options(-fdebug-prefix-map=${PROJECT_SOURCE_DIR}=.)
  endif()
endif()
