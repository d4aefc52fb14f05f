# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` lays out, in components, which are the Debian packages of deb.cmake:
#     lib      the shared library
#     dev      headers, static library, pkg-config file, CMake package
#     models   the networks that come with the program; src/codec/models.c finds them from where it was loaded
#     cli      the program, its man pages and completions, systemd units, documents
#     mpi      the MPI plug-in of the program, where it was built
# Nothing here may depend on the prefix of the configuration: `cmake --install --prefix P` decides it.
include(CMakePackageConfigHelpers)

# --- lib, dev ---
if(BUILD_SHARED_LIBS)
  install(TARGETS fedkt LIBRARY COMPONENT lib NAMELINK_COMPONENT dev)
endif()
install(TARGETS fedkt_static ARCHIVE COMPONENT dev)
install(DIRECTORY include/fedkt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# --- models ---
install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/fedkt COMPONENT models)

# DEPS_LDFLAGS: the direct dependencies, as flags and not as Requires.private, for which pkg-config would want all of
# their files even from a program that uses the shared library.
list(JOIN DEPS_LDFLAGS " " libs_private)
set(libs_private " ${libs_private} -ldnnl -lgomp -lpthread -lm")
set(FEDKT_CUDA_LIBS "")
if(FEDKT_CUDA) # a program that links the static library links CUDA's runtime as well
  set(libs_private "${libs_private} -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
  set(FEDKT_CUDA_LIBS ";${CUDAToolkit_LIBRARY_DIR}/libcudart_static.a;-ldl;-lrt")
endif()
if(BUILD_SHARED_LIBS)
  set(FEDKT_PC_LIBS "")
  set(FEDKT_PC_LIBS_PRIVATE "${libs_private}")
else() # without a shared library every program needs them
  set(FEDKT_PC_LIBS "${libs_private}")
  set(FEDKT_PC_LIBS_PRIVATE "")
endif()
# The prefix follows from the place of the file, so an installed tree can be moved.
file(RELATIVE_PATH pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" FEDKT_PC_PREFIX "\${pcfiledir}/${pc_up}")
if(FEDKT_DEB) # a package does not move, and pkg-config leaves out -I/usr/include when it can recognise it
  set(FEDKT_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()
configure_file(packaging/fedkt.pc.in fedkt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/fedkt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

list(JOIN FEDKT_REQUIRES ", " FEDKT_REQUIRES_TEXT)
string(REPLACE ";" " " FEDKT_REQUIRES "${FEDKT_REQUIRES}")
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fedkt)
configure_package_config_file(packaging/fedktConfig.cmake.in ${CMAKE_BINARY_DIR}/fedktConfig.cmake
                              INSTALL_DESTINATION ${config_folder} NO_CHECK_REQUIRED_COMPONENTS_MACRO
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/fedktConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/fedktConfig.cmake ${CMAKE_BINARY_DIR}/fedktConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT dev)

# --- cli ---
if(NOT TARGET fedkt_cli) # FEDKT_NET=OFF
  return()
endif()
install(TARGETS fedkt_cli RUNTIME COMPONENT cli)
if(TARGET fedkt_mpi) # src/cli/core/launch.c finds it from where the program is
  install(TARGETS fedkt_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fedkt COMPONENT mpi)
endif()
# The binary writes its own man pages and completions, from the option tables.
set(help_folder ${CMAKE_BINARY_DIR}/help)
set(compress "")
if(FEDKT_DEB)
  set(compress COMMAND sh -c "gzip -9n ${help_folder}/man1/*")
endif()
add_custom_command(OUTPUT ${help_folder}/stamp
                   COMMAND ${CMAKE_COMMAND} -E rm -rf ${help_folder}
                   COMMAND fedkt_cli help --man ${help_folder}/man1
                   COMMAND fedkt_cli help --completion bash > ${help_folder}/fedkt
                   COMMAND fedkt_cli help --completion zsh > ${help_folder}/_fedkt
                   ${compress}
                   COMMAND ${CMAKE_COMMAND} -E touch ${help_folder}/stamp
                   DEPENDS fedkt_cli VERBATIM)
add_custom_target(fedkt_help ALL DEPENDS ${help_folder}/stamp)
set(FEDKT_ZSH_FOLDER ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "folder of zsh's completions")
install(DIRECTORY ${help_folder}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT cli)
install(FILES ${help_folder}/fedkt DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT cli)
install(FILES ${help_folder}/_fedkt DESTINATION ${FEDKT_ZSH_FOLDER} COMPONENT cli)

# Units name the binary and the documents where this installation has them, which is known at its time only.
set(FEDKT_UNIT_FOLDER lib/systemd/system CACHE STRING "folder of systemd's units")
configure_file(packaging/install_units.cmake.in install_units.cmake @ONLY)
install(SCRIPT ${CMAKE_BINARY_DIR}/install_units.cmake COMPONENT cli)
install(FILES packaging/systemd/fedkt.sysusers DESTINATION lib/sysusers.d RENAME fedkt.conf COMPONENT cli)

file(GLOB documents CONFIGURE_DEPENDS docs/*.md docs/*.yaml)
install(FILES README.md SECURITY.md ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT cli)
install(DIRECTORY docs/schema DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT cli
        FILES_MATCHING PATTERN "*.json" PATTERN "examples" EXCLUDE)
if(NOT FEDKT_DEB) # a Debian package has its own copyright file and a compressed changelog
  install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT cli)
endif()
