# Copies the libraries that the installed programs need and that not every Linux has into lib/ddprun/bundled, with the
# licences of their Debian packages. Debian's own packages, which are the components, depend on those instead.
if(CMAKE_INSTALL_COMPONENT)
  return()
endif()
set(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX})
set(folder ${prefix}/lib/ddprun/bundled)
file(GLOB programs ${prefix}/bin/ddprun ${prefix}/bin/ddprun-* ${prefix}/libexec/*.bin)
list(REMOVE_ITEM programs ${prefix}/bin/ddprun-completion)  # a script
file(GLOB modules ${prefix}/lib/*.so ${prefix}/lib/ddprun/v1/*.so)
# Those of manylinux (PEP 600), of this project, and of wheels.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} MODULES ${modules} RESOLVED_DEPENDENCIES_VAR libraries
     PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|z|stdc[+][+]|gcc_s)[.]so" "^ld-linux" "^libddprun" "^libtorch"
                         "^libc10[.]" "^lib(nccl|cudart)[.]" ${excluded})
foreach(module IN LISTS ucx_modules)  # which UCX loads from beside itself
  file(INSTALL ${module} DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/ddprun/bundled/ucx FOLLOW_SYMLINK_CHAIN)
endforeach()
foreach(library IN LISTS libraries)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH ${library} file)
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${file} ${folder}/${name})
  cmake_path(GET file FILENAME name)
  execute_process(COMMAND dpkg-query --search */${name} OUTPUT_VARIABLE package ERROR_QUIET)  # in /lib or in /usr/lib
  string(REGEX REPLACE ":.*" "" package "${package}")
  file(COPY_FILE /usr/share/doc/${package}/copyright ${folder}/${package}.copyright)
endforeach()
