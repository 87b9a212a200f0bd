# ddprun_add_module(<module> SOURCES ... [USES modules and libraries, public] [PRIVATE libraries])
# A module of core/ or tools/: a static library ddprun_<module>. Its dependencies point downwards only, and this is where
# they are stated.
function(ddprun_add_module module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;PRIVATE")
  add_library(ddprun_${module} STATIC ${arg_SOURCES})
  target_include_directories(ddprun_${module} PUBLIC ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR})
  target_link_libraries(ddprun_${module} PUBLIC ${arg_USES} PRIVATE ddprun_flags ${arg_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY DDPRUN_MODULES ddprun_${module})
endfunction()
