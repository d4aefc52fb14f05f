# SPDX-License-Identifier: Apache-2.0
# The CUDA toolkit, for -DFEDKT_CUDA=ON alone. The runtime is linked statically; cuDNN and cuBLASLt are opened when a card
# is used (nn/cuda/libraries.c), so only their headers are needed here.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  find_program(FEDKT_CUDA_HOST NAMES g++-12 g++) # CUDA 13 takes gcc up to 15; 12 is Debian 12's
  set(CMAKE_CUDA_HOST_COMPILER ${FEDKT_CUDA_HOST})
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(FEDKT_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT FEDKT_NVCC)
    message(FATAL_ERROR "not found: nvcc; FEDKT_CUDA=ON needs the CUDA toolkit (-DCMAKE_CUDA_COMPILER=.../nvcc)")
  endif()
  set(CMAKE_CUDA_COMPILER ${FEDKT_NVCC})
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12 REQUIRED)
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(NOT CUDNN_INCLUDE_DIR OR NOT CUBLASLT_INCLUDE_DIR)
  message(FATAL_ERROR "not found: cudnn.h (version 9) or cublasLt.h; FEDKT_CUDA=ON needs their headers")
endif()
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)

# Of the host's C files that include CUDA headers, and of what is linked.
add_library(fedkt_cuda INTERFACE)
target_include_directories(fedkt_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR}
                           ${CUBLASLT_INCLUDE_DIR})
target_compile_definitions(fedkt_cuda INTERFACE FEDKT_CUDA)
target_link_libraries(fedkt_cuda INTERFACE CUDA::cudart_static ${CMAKE_DL_LIBS})

# Of the kernels. No fast-math; -lineinfo costs nothing at run time and lets profilers name lines.
add_library(fedkt_cuda_flags INTERFACE)
target_compile_definitions(fedkt_cuda_flags INTERFACE _GNU_SOURCE FEDKT_CUDA)
target_include_directories(fedkt_cuda_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(fedkt_cuda_flags INTERFACE -lineinfo -Xcompiler=-Wall,-Wextra,-fno-exceptions,-fno-rtti)
