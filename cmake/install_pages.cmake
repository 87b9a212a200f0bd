# Installs the pages that a user reads, their pictures and the examples, from `source`, the source tree. Their links lead
# to installed files; a link to another file of the source tree becomes plain text.
set(installed ${CMAKE_INSTALL_PREFIX}/share/doc/ddprun)  # file(INSTALL) adds DESTDIR
set(folder $ENV{DESTDIR}${installed})
set(developers "architecture|decisions")
file(GLOB pictures ${source}/docs/*.png ${source}/docs/*.svg)
file(INSTALL ${pictures} DESTINATION ${installed})
file(GLOB pages ${source}/docs/*.md ${source}/README.md ${source}/CHANGELOG.md ${source}/SUPPORT.md)
list(FILTER pages EXCLUDE REGEX "/(${developers})\\.md$")
foreach(page IN LISTS pages)
  file(READ ${page} text)
  string(REPLACE "](docs/" "](" text "${text}")
  string(REPLACE "](../core/include/" "](../../../include/" text "${text}")
  string(REPLACE "](../examples/" "](examples/" text "${text}")
  string(REPLACE "](../README.md" "](README.md" text "${text}")
  string(REPLACE "](../SUPPORT.md" "](SUPPORT.md" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((CONTRIBUTING|configs/|history/|${developers}|\\.\\./(bench|core|plugins|tests|tools))[^)]*\\)"
                       "\\1" text "${text}")
  cmake_path(GET page FILENAME name)
  file(WRITE ${folder}/${name} "${text}")
endforeach()

file(INSTALL ${source}/examples DESTINATION ${installed})
file(READ ${source}/examples/README.md text)
string(REPLACE "](../docs/" "](../" text "${text}")
file(WRITE ${folder}/examples/README.md "${text}")
