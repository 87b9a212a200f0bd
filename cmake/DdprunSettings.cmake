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
set(DDPRUN_PLUGIN_OUTPUT ${CMAKE_BINARY_DIR}/lib/ddprun)              # where the build puts plugins,
set(DDPRUN_PLUGIN_INSTALL lib/ddprun)   # and where the prefix has them: lib/ddprun

add_library(ddprun_flags INTERFACE)
# Nobody replaces a function of libddprun from outside, so calls within it need no indirection.
target_compile_options(ddprun_flags INTERFACE -Wall -Wextra -Wpedantic
                       $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
if(DDPRUN_SANITIZE)
  # For all, libraries of others excepted: a race or overflow anywhere in a process of ours ends it.
  add_compile_options(-fsanitize=${DDPRUN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DDPRUN_SANITIZE})
  if(DDPRUN_SANITIZE MATCHES undefined)
    # GCC's manual says that sanitizers make it warn of this where nothing is wrong: so it does of every std::regex. The
    # other builds warn.
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
endif()

# ccache, told what makes precompiled headers cacheable, and to know a file by its path within this tree, so that a second
# clone, or a second build folder, compiles nothing that the first has compiled.
find_program(DDPRUN_CCACHE ccache)
if(DDPRUN_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DDPRUN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
