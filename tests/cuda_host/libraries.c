/* SPDX-License-Identifier: Apache-2.0 */
/* libraries.c - the emulation needs neither cuDNN nor cuBLASLt. */
#include "nn/cuda/libraries.h"

fkt_status fkt_cuda_libraries_start(int index)
{
    (void)index;
    return FKT_OK;
}

const char *fkt_cuda_libraries_text(void) { return "plain loops"; }
