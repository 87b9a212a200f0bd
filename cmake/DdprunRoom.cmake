# ddprun_add_room(<room> SOURCES ... [USES rooms and libraries, public] [PRIVATE libraries])
# A room of core/: a static library ddprun_<room>. Its dependencies point downwards only, and this is where they are stated.
function(ddprun_add_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;PRIVATE")
  add_library(ddprun_${room} STATIC ${arg_SOURCES})
  target_include_directories(ddprun_${room} PUBLIC ${PROJECT_SOURCE_DIR}/core)
  target_link_libraries(ddprun_${room} PUBLIC ${arg_USES} PRIVATE ddprun_flags ${arg_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY DDPRUN_ROOMS ddprun_${room})
endfunction()
