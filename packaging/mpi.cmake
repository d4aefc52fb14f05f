# SPDX-License-Identifier: Apache-2.0
# The MPI plug-in (docs/decisions/0027-mpi.md): a module that the program loads when a launcher has started it, so that
# neither the library nor the program is linked with MPI.
if(FEDKT_MPI STREQUAL "OFF" OR NOT TARGET fedkt_cli)
  return()
endif()
if(FEDKT_MPI STREQUAL "ON")
  find_package(MPI REQUIRED COMPONENTS C)
else()
  find_package(MPI QUIET COMPONENTS C)
endif()
if(NOT MPI_C_FOUND)
  message(STATUS "the MPI plug-in is not built: MPI is not installed, or FEDKT_MPI is OFF")
  return()
endif()
add_library(fedkt_mpi MODULE ${PROJECT_SOURCE_DIR}/src/mpi/mpi.c)
target_link_libraries(fedkt_mpi PRIVATE fedkt_flags MPI::MPI_C)
target_compile_options(fedkt_mpi PRIVATE -include ${PROJECT_SOURCE_DIR}/src/base/banned.h)
set_target_properties(fedkt_mpi PROPERTIES PREFIX "" OUTPUT_NAME mpi
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/fedkt)
add_dependencies(fedkt_cli fedkt_mpi)
