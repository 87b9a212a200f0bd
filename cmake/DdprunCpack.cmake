# What `cpack -G "DEB;TGZ"` makes of a build with DDPRUN_PACKAGE=system: packages of Debian, split as Debian would, and an
# archive for any folder. The packages depend on Debian's libraries; the archive brings them (install_bundled.cmake).
set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if(NOT maintainer MATCHES "^.+ <.+@.+>$")
  message(FATAL_ERROR "a package names who maintains it; set DEBFULLNAME and DEBEMAIL, your name and address")
endif()
file(READ /etc/os-release os)
string(REGEX MATCH "(^|\n)VERSION_ID=\"?([0-9]+)" unused "${os}")
set(DDPRUN_REVISION 1 CACHE STRING "Of Debian's packages of one version")
set(release ${DDPRUN_REVISION}~deb${CMAKE_MATCH_2})  # so that an upgrade of Debian upgrades ddprun

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME ddprun)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${maintainer}")
set(CPACK_PACKAGE_FILE_NAME ddprun-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ddprun libddprun1 ddprun-plugins libddprun-dev)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${release})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBDDPRUN1_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBDDPRUN-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# LibTorch and NCCL are not Debian's, so shlibdeps finds no package for them.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib ${DDPRUN_TORCH_LIB} ${ddprun_nccl_lib}
                                                ${ddprun_cuda_lib})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBDDPRUN1_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)

set(same "(= ${PROJECT_VERSION}-${release})")
function(ddprun_debian package depends summary description)
  string(TOUPPER ${package} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  # What Debian wants of each package.
  set(folder ${PROJECT_BINARY_DIR}/debian/${package})
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${folder}/changelog "${package} (${PROJECT_VERSION}-${release}) unstable; urgency=medium\n\n"
       "  * See /usr/share/doc/ddprun/CHANGELOG.md.gz of the package ddprun.\n\n -- ${maintainer}  ${date}\n")
  execute_process(COMMAND gzip -9nf ${folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${folder}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
       "Upstream-Name: ddprun\n\nFiles: *\nCopyright: 2026 the ddprun maintainers\nLicense: Apache-2.0\n"
       " The text of this licence is in /usr/share/common-licenses/Apache-2.0.\n")
  install(FILES ${folder}/copyright DESTINATION share/doc/${package} COMPONENT ${package})
  install(FILES ${folder}/changelog.gz DESTINATION share/doc/${package} RENAME changelog.Debian.gz COMPONENT ${package})
endfunction()
ddprun_debian(ddprun "libddprun1 ${same}, ddprun-plugins ${same}"
  "data-parallel training with pluggable communication backends"
  "Trains a model on several processes and hosts, compares backends, and measures\ncollectives. Training needs PyTorch's LibTorch, which Debian does not have:\nddprun uses that of the active Python environment.")
ddprun_debian(libddprun1 "" "data-parallel training, shared libraries"
  "DistributedDataParallel for C++ programs with LibTorch, and collectives for\nprograms in C and other languages.")
ddprun_debian(ddprun-plugins "" "data-parallel training, plugins"
  "The communication backends gloo, shm, ucx and nccl, models and data sets of\nddprun.")
ddprun_debian(libddprun-dev "libddprun1 ${same}, ddprun ${same}" "data-parallel training, development files"
  "Headers, and files for CMake and pkg-config: for plugins of ddprun, and for\nprograms that use its libraries.")
include(CPack)
