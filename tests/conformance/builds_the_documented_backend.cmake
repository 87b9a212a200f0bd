# docs/writing-a-backend.md, done as it says: its plugin, built outside against an installed ddprun, conforms.
file(REMOVE_RECURSE ${FOLDER})
file(READ ${DOCUMENT} document)

# The first block of the document in `language` becomes FOLDER/name.
function(extract language name)
  string(FIND "${document}" "```${language}\n" begin)
  string(LENGTH "```${language}\n" fence)
  math(EXPR begin "${begin} + ${fence}")
  string(SUBSTRING "${document}" ${begin} -1 rest)
  string(FIND "${rest}" "```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  file(WRITE ${FOLDER}/${name} "${block}")
endfunction()

extract(cpp mine.cpp)
extract(cmake CMakeLists.txt)
set(step COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix OUTPUT_QUIET ${step})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${FOLDER} -B ${FOLDER}/build -G Ninja -DCMAKE_PREFIX_PATH=${FOLDER}/prefix
                        -DCMAKE_CXX_COMPILER=${COMPILER} ${step})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build ${step})
execute_process(COMMAND ${FOLDER}/prefix/bin/ddprun-conformance --plugin mine --plugin-path ${FOLDER}/build --ranks 1 ${step})
