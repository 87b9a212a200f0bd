# ddprun_add_library(<name> SOURCES ... [USES modules and libraries, public] [PRIVATE libraries])
# A static library ddprun_<name>. Its dependencies are only modules of lower layers, and are declared here.
function(ddprun_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;PRIVATE")
  add_library(ddprun_${name} STATIC ${arg_SOURCES})
  target_include_directories(ddprun_${name} PUBLIC ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR})
  target_link_libraries(ddprun_${name} PUBLIC ${arg_USES} PRIVATE ddprun_flags ${arg_PRIVATE})
endfunction()

# ddprun_add_module(<module> ...): a module of core/, launch/, ddp/ or cli/, with the arguments of ddprun_add_library(); a part of libddprun.
function(ddprun_add_module module)
  ddprun_add_library(${module} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY DDPRUN_MODULES ddprun_${module})
endfunction()

# ddprun_add_tool(<name> USES libraries): builds ddprun-<name> from main.cpp and installs it. `ddprun <name>` runs it.
function(ddprun_add_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES")
  add_executable(ddprun-${name} main.cpp)
  target_link_libraries(ddprun-${name} PRIVATE ${arg_USES} ddprun_console ddprun_command_line ddprun_flags)
  set_property(GLOBAL APPEND PROPERTY DDPRUN_TOOLS ddprun-${name})
  install(TARGETS ddprun-${name} RUNTIME DESTINATION bin)
endfunction()
