# Installs what shells and man look for: the completions of bash, zsh and fish, and a manual page for each command, both made
# from the help of the installed programs. Variables: source, version.
set(prefix $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX})

foreach(place IN ITEMS bash=bash-completion/completions/ddprun zsh=zsh/site-functions/_ddprun
                       fish=fish/vendor_completions.d/ddprun.fish)
  string(REPLACE "=" ";" place ${place})
  list(POP_FRONT place shell file)
  execute_process(COMMAND ${prefix}/bin/ddprun-completion ${shell} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${prefix}/share/${file} "${text}")
endforeach()

execute_process(COMMAND ${prefix}/bin/ddprun --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n  [a-z]+   +[A-Z]" commands "${help}")  # the lines of its subcommands and tools
foreach(command IN ITEMS "" LISTS commands)
  string(REGEX REPLACE "\n  ([a-z]+) .*" "\\1" command "${command}")
  string(REGEX REPLACE "(.+)" "-\\1" suffix "${command}")
  execute_process(COMMAND ${prefix}/bin/ddprun ${command} --help
                  COMMAND awk -v name=ddprun${suffix} -v version=${version} -f ${source}/cmake/man.awk
                  OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${prefix}/share/man/man1/ddprun${suffix}.1 "${page}")
endforeach()
if(CMAKE_INSTALL_COMPONENT)  # Debian's packages have compressed pages
  file(GLOB pages ${prefix}/share/man/man1/*.1)
  execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
