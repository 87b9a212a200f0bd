# What `cmake --install` puts into a prefix, and what `find_package(ddprun)` finds there: bin/ddprun, bin/ddprun-<tool>,
# libexec/ (programs that tools start), lib/libddprun.so, lib/libddprun_c.so, lib/libddprun_sdk.a (which plugins link),
# lib/ddprun/python/ (a folder for PYTHONPATH), lib/ddprun/v1/ (the plugins), share/ddprun/ (files that draw reports,
# templates of plugins), include/ddprun/, lib/cmake/ddprun/, lib/pkgconfig/, share/doc/ddprun/, share/man/ and the
# completions of shells. All paths between them are relative; only Torch's folder is absolute.
# Included last, because it needs all targets.
include(CMakePackageConfigHelpers)
set(package lib/cmake/ddprun)

# The program and its plugins, which every run needs. ./ddprun builds this.
get_property(plugins GLOBAL PROPERTY DDPRUN_PLUGINS)
add_custom_target(runtime DEPENDS ${plugins})
# Everything that is installed, with the tools.
get_property(tools GLOBAL PROPERTY DDPRUN_TOOLS)
get_property(helpers GLOBAL PROPERTY DDPRUN_HELPERS)
add_custom_target(tools DEPENDS ${tools} ${helpers})
add_custom_target(product DEPENDS runtime tools ddprun_charts)

foreach(target ddprun libddprun ddprun_c)
  if(TARGET ${target})
    add_dependencies(runtime ${target})
  endif()
endforeach()
install(TARGETS ddprun RUNTIME DESTINATION bin)
install(TARGETS ddprun_c LIBRARY DESTINATION lib COMPONENT libddprun1 NAMELINK_COMPONENT libddprun-dev)
if(TARGET ddprun-engine)
  install(TARGETS libddprun LIBRARY DESTINATION lib COMPONENT ${ddprun_torch_libddprun1}
                                                    NAMELINK_COMPONENT ${ddprun_torch_libddprun-dev})
  install(TARGETS ddprun-engine RUNTIME DESTINATION libexec COMPONENT ${ddprun_torch_ddprun})
  # The build folder has the layout of the prefix, so it uses the same run paths. (CMake would add an empty entry to the
  # build's run paths, which means the current folder.)
  set_target_properties(ddprun-engine libddprun PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;${DDPRUN_TORCH_RPATH}"
                                                    BUILD_WITH_INSTALL_RPATH ON)
  if(DDPRUN_PACKAGE)
    string(REGEX MATCH "^[0-9]+[.][0-9]+" minor ${DDPRUN_TORCH_VERSION})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/with_torch.in ${PROJECT_BINARY_DIR}/with_torch @ONLY)
    foreach(target ddprun-engine ddprun-conformance-model)
      set_target_properties(${target} PROPERTIES SUFFIX .bin)
      install(PROGRAMS ${PROJECT_BINARY_DIR}/with_torch DESTINATION libexec RENAME ${target}
              COMPONENT ${ddprun_torch_ddprun})
    endforeach()
  endif()
endif()

install(FILES ${ddprun_share_files} DESTINATION share/ddprun)

set_target_properties(ddprun_sdk PROPERTIES EXPORT_NAME sdk)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/core/include/ddprun ${PROJECT_SOURCE_DIR}/c/include/ddprun DESTINATION include
        COMPONENT libddprun-dev)
install(TARGETS ddprun_sdk EXPORT ddprun ARCHIVE DESTINATION lib COMPONENT libddprun-dev
        INCLUDES DESTINATION include)
install(EXPORT ddprun NAMESPACE ddprun:: FILE ddprunTargets.cmake DESTINATION ${package} COMPONENT libddprun-dev)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ddprunConfig.cmake.in ${PROJECT_BINARY_DIR}/ddprunConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ddprunConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ddprunConfig.cmake ${PROJECT_BINARY_DIR}/ddprunConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/DdprunPlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/DdprunTorch.cmake
              ${CMAKE_CURRENT_LIST_DIR}/DdprunConformance.cmake
        DESTINATION ${package} COMPONENT libddprun-dev)

# A package cannot say where Torch is, so it has no ddprun-ddp.pc.
set(pc_files ddprun.pc ddprun-c.pc)
if(DDPRUN_TORCH)
  block()
    if(DDPRUN_PACKAGE)
      set(DDPRUN_TORCH_DIR "")
    endif()
    configure_file(${CMAKE_CURRENT_LIST_DIR}/ddprunBuiltTorch.cmake.in ${PROJECT_BINARY_DIR}/ddprunBuiltTorch.cmake @ONLY)
  endblock()
  install(FILES ${PROJECT_BINARY_DIR}/ddprunBuiltTorch.cmake DESTINATION ${package} COMPONENT ${ddprun_torch_libddprun-dev})
  if(NOT DDPRUN_PACKAGE)
    list(APPEND pc_files ddprun-ddp.pc)
  endif()
  # GCC 12's own default is C++17. A flag of pkg-config overrides the program's -std, so it is there only if it must be.
  set(ddprun_standard "")
  if(DDPRUN_TORCH_CXX GREATER 17)
    set(ddprun_standard "-std=c++${DDPRUN_TORCH_CXX} ")
  endif()
endif()
foreach(file ${pc_files})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${file}.in ${PROJECT_BINARY_DIR}/${file} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${file} DESTINATION lib/pkgconfig COMPONENT libddprun-dev)
endforeach()

if(DDPRUN_PACKAGE)
  set(excluded "")
  set(ucx_modules "")
  if(DDPRUN_PACKAGE STREQUAL wheel)
    set(excluded "^libuc[ps][.]")
  else()
    file(GLOB ucx_modules ${ddprun_ucx_modules}/*.so.0)
  endif()
  install(CODE "set(excluded \"${excluded}\")\nset(ucx_modules \"${ucx_modules}\")")
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_bundled.cmake)
endif()
install(CODE "set(source ${PROJECT_SOURCE_DIR})
set(version ${PROJECT_VERSION})")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_pages.cmake)
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_shell_files.cmake)
if(DDPRUN_PACKAGE STREQUAL system)
  include(DdprunCpack)
endif()
