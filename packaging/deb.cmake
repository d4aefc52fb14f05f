# SPDX-License-Identifier: Apache-2.0
# The Debian packages, by CPack, from the components of install.cmake:
#     libfedkt0      lib: the name follows the soname
#     libfedkt-dev   dev
#     fedkt-models   models
#     fedkt          cli: it holds the library inside, so it does not depend on libfedkt0
#     fedkt-mpi      mpi, where MPI was found
# packaging/build_deb.sh makes them; docs/packaging.md says what is in them and why.
if(NOT FEDKT_DEB)
  return()
endif()
set(deb_folder ${PROJECT_SOURCE_DIR}/packaging/deb)
set(deb_build ${CMAKE_BINARY_DIR}/deb)
set(deb_lib libfedkt${PROJECT_VERSION_MAJOR})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${deb_folder}/changelog)

# The first line of the changelog has the version: "fedkt (0.1.0-1) unstable; urgency=medium".
file(STRINGS ${deb_folder}/changelog deb_version LIMIT_COUNT 1)
if(NOT deb_version MATCHES "^fedkt \\(${PROJECT_VERSION}-([0-9]+)\\) ")
  message(FATAL_ERROR "packaging/deb/changelog does not begin with an entry of version ${PROJECT_VERSION}")
endif()
set(deb_release ${CMAKE_MATCH_1})
set(deb_version ${PROJECT_VERSION}-${deb_release})

# Each package has its own copyright and changelogs.
file(MAKE_DIRECTORY ${deb_build})
add_custom_command(OUTPUT ${deb_build}/changelog.Debian.gz ${deb_build}/changelog.gz
                   COMMAND gzip -9nc ${deb_folder}/changelog > ${deb_build}/changelog.Debian.gz
                   COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/CHANGELOG.md > ${deb_build}/changelog.gz
                   DEPENDS ${deb_folder}/changelog ${PROJECT_SOURCE_DIR}/CHANGELOG.md VERBATIM)
# Every name is as old as this version: before 1.0 a program must be built again for each minor version.
add_custom_command(OUTPUT ${deb_build}/symbols ${deb_build}/shlibs ${deb_build}/depends
                   COMMAND ${deb_folder}/make_control.sh $<TARGET_FILE:fedkt> ${deb_lib} ${PROJECT_VERSION} ${deb_build}
                   DEPENDS fedkt ${deb_folder}/make_control.sh VERBATIM)
configure_file(packaging/deb/cpack_project.cmake.in ${deb_build}/cpack_project.cmake @ONLY)
set(CPACK_PROJECT_CONFIG_FILE ${deb_build}/cpack_project.cmake)
add_custom_target(fedkt_deb ALL DEPENDS ${deb_build}/changelog.Debian.gz ${deb_build}/symbols)
set(deb_pairs lib:${deb_lib} dev:libfedkt-dev models:fedkt-models cli:fedkt)
if(TARGET fedkt_mpi)
  list(APPEND deb_pairs mpi:fedkt-mpi)
endif()
foreach(pair ${deb_pairs})
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES ${deb_folder}/copyright ${deb_build}/changelog.Debian.gz ${deb_build}/changelog.gz
          DESTINATION ${documents} COMPONENT ${component})
  install(FILES ${deb_folder}/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
          RENAME ${package} COMPONENT ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL lib dev models cli)
if(TARGET fedkt_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_SET_DESTDIR ON) # units are written for the prefix, not for the folder that the package is gathered in
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(FEDKT_MAINTAINER "fedkt maintainers <maintainers@fedkt.example>" CACHE STRING
    "who stands for the packages; build_deb.sh takes it from DEBFULLNAME and DEBEMAIL")
set(CPACK_PACKAGE_CONTACT "${FEDKT_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE ${deb_release})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE fedkt)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(about "Sites that may not share their images compute class statistics of them,
add noise, and send them through secure aggregation. From the sum, anybody
can draw synthetic images and train classifiers under a stated differential
privacy guarantee.")
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_DESCRIPTION "private synthetic image data from many sites - library
${about}

This package has the shared library.")
set(CPACK_DEBIAN_LIB_PACKAGE_SHLIBDEPS OFF) # see cpack_project.cmake.in
set(CPACK_DEBIAN_LIB_PACKAGE_RECOMMENDS "fedkt-models (= ${deb_version})")
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA "${deb_folder}/triggers;${deb_build}/symbols;${deb_build}/shlibs")

set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION "private synthetic image data from many sites - development files
${about}

This package has the headers, the static library, and the files for
pkg-config and CMake.")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${deb_lib} (= ${deb_version})")
# A program that links the shared library needs none of these; one that links libfedkt.a needs all.
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "fedkt, libsodium-dev, libssl-dev, libprotobuf-c-dev, libsqlite3-dev, \
libjansson-dev, libpng-dev, libjpeg-dev, libwebp-dev, libtiff-dev, libarchive-dev, zlib1g-dev, libopenblas-dev, \
liblapacke-dev, libdnnl-dev, libcurl4-openssl-dev, libmicrohttpd-dev")

set(CPACK_DEBIAN_MODELS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MODELS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_MODELS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_MODELS_DESCRIPTION "private synthetic image data from many sites - networks
${about}

This package has the networks that turn images into numbers and back, with
their public calibrations.")

set(CPACK_DEBIAN_CLI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLI_DESCRIPTION "private synthetic image data from many sites
${about}

This package has the program, systemd units for a server and for a site,
and the documents.")
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_DESCRIPTION "private synthetic image data from many sites - MPI
${about}

This package has the part of the program that connects processes which
mpirun or srun have started.")
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "fedkt (= ${deb_version})")
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)

set(CPACK_DEBIAN_CLI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CLI_PACKAGE_DEPENDS "fedkt-models (= ${deb_version}), systemd-standalone-sysusers | systemd-sysusers | systemd")
set(CPACK_DEBIAN_CLI_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_CLI_PACKAGE_CONTROL_EXTRA "${deb_folder}/postinst")
include(CPack)
