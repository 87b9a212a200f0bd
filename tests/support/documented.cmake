# For tests that follow the instructions of a document.

# Writes the block "```language name" of `document`, a text, to the file `path`, which has this name.
function(extract document language path)
  cmake_path(GET path FILENAME name)
  string(FIND "${document}" "```${language} ${name}\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "the document has no block of ${language} for ${name}")
  endif()
  string(LENGTH "```${language} ${name}\n" fence)
  math(EXPR begin "${begin} + ${fence}")
  string(SUBSTRING "${document}" ${begin} -1 rest)
  string(FIND "${rest}" "```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  file(WRITE ${path} "${block}")
endfunction()

# Runs a command that must succeed.
macro(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endmacro()

# Installs the build into <folder>/prefix, and builds the project in <folder> against it in <folder>/build.
macro(build_out_of_tree build folder compiler)
  step(${CMAKE_COMMAND} --install ${build} --prefix ${folder}/prefix OUTPUT_QUIET)
  step(${CMAKE_COMMAND} -S ${folder} -B ${folder}/build -G Ninja -DCMAKE_PREFIX_PATH=${folder}/prefix
       -DCMAKE_CXX_COMPILER=${compiler})
  step(${CMAKE_COMMAND} --build ${folder}/build)
endmacro()
