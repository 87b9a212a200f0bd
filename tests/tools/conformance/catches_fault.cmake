# The fake "faulty" with a fault must fail in the case CASE, and the reason must contain TEXT. (conformance_faulty_processes
# sees it pass without one.)
execute_process(COMMAND ${PROGRAM} --plugin ${PLUGIN} --option fault=${FAULT} --as processes --ranks 2 --seed 1
                        --deadline 7000 --filter ${CASE}
                OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
message("${output}")
file(GLOB left /tmp/ddprun-faulty-${FAULT}-*)
if(left)
  file(REMOVE ${left})
endif()
if(NOT code EQUAL 6)
  message(FATAL_ERROR "expected exit code 6, got ${code}")
endif()
foreach(expected "FAILED  world 2 processes: ${CASE}\n" "${TEXT}")
  string(FIND "${output}" "${expected}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "expected in the output: ${expected}")
  endif()
endforeach()
