# Follows docs/writing-a-backend.md: the plugin, built outside the tree against an installed ddprun, must conform.
include(${CMAKE_CURRENT_LIST_DIR}/../../support/documented.cmake)
file(REMOVE_RECURSE ${FOLDER})
file(READ ${DOCUMENT} document)
extract("${document}" cpp ${FOLDER}/mine.cpp)
extract("${document}" cmake ${FOLDER}/CMakeLists.txt)
build_out_of_tree(${BUILD} ${FOLDER} ${COMPILER})
step(${FOLDER}/prefix/bin/ddprun-conformance --plugin mine --plugin-path ${FOLDER}/build --ranks 1)
step(${CMAKE_CTEST_COMMAND} --test-dir ${FOLDER}/build --output-on-failure --no-tests=error)
