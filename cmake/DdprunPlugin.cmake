# ddprun_add_plugin(comm|model|dataset <name> SOURCES ... [PRIVATE libraries])
# A plugin: libddprun_<kind>_<name>.so, which exports only its entry; target ddprun_<kind>_<name>. ddprun's own build
# puts it into the plugins folder. `cmake --install` puts it into <prefix>/lib/ddprun/v1, also in other projects; there,
# `cmake --install <build folder> --component user` puts it into the user's own folder instead. It is optimised, unless
# CMAKE_BUILD_TYPE or the flags say otherwise.
include_guard()

# A plugin that is not installed, for tests: ddprun_add_plugin_library(comm|model|dataset <name> SOURCES ...
# [PRIVATE libraries])
function(ddprun_add_plugin_library kind name)
  if(NOT kind MATCHES "^(comm|model|dataset)$")
    message(FATAL_ERROR "ddprun_add_plugin: kind '${kind}': expected comm, model or dataset")
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;PRIVATE")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ddprun_add_plugin(${kind} ${name}): expected SOURCES ... [PRIVATE ...], got '${ARGN}'")
  endif()
  if(kind STREQUAL model AND NOT TARGET ddprun_torch)
    message(FATAL_ERROR "ddprun_add_plugin(model ${name}): a model needs Torch: find_package(ddprun REQUIRED COMPONENTS "
                        "model)")
  endif()
  set(target ddprun_${kind}_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  set(exports ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: ddprun_${kind}_plugin_v*; local: *; };\n")
  target_link_libraries(${target} PRIVATE ddprun::sdk $<TARGET_NAME_IF_EXISTS:ddprun_flags> ${arg_PRIVATE})
  if(kind STREQUAL model)
    target_link_libraries(${target} PRIVATE ddprun_torch)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${DDPRUN_TORCH_RPATH}" BUILD_WITH_INSTALL_RPATH ON)
  endif()
  get_property(configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT configurations AND NOT CMAKE_BUILD_TYPE AND NOT "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "(^| )-O")
    target_compile_options(${target} PRIVATE -O3)
  endif()
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                                             LINK_DEPENDS ${exports} LIBRARY_OUTPUT_DIRECTORY "${DDPRUN_PLUGIN_OUTPUT}")
endfunction()

function(ddprun_add_plugin kind name)
  ddprun_add_plugin_library(${kind} ${name} ${ARGN})
  set(target ddprun_${kind}_${name})
  set_property(GLOBAL APPEND PROPERTY DDPRUN_PLUGINS ${target})
  if(kind STREQUAL model AND DEFINED ddprun_torch_ddprun-plugins)  # a model of this project
    set(component COMPONENT ${ddprun_torch_ddprun-plugins})
  elseif(DEFINED ddprun_torch_ddprun-plugins)
    set(component COMPONENT ddprun-plugins)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${DDPRUN_PLUGIN_INSTALL} ${component})
  if(DDPRUN_PLUGIN_USER)
    install(TARGETS ${target} LIBRARY DESTINATION ${DDPRUN_PLUGIN_USER} COMPONENT user EXCLUDE_FROM_ALL)
  endif()
endfunction()
