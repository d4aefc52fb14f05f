/* SPDX-License-Identifier: Apache-2.0 */
/* cards.h - which cards this machine has, for the table of nn/backends.c. It needs no header of CUDA. */
#ifndef FKT_NN_CUDA_CARDS_H
#define FKT_NN_CUDA_CARDS_H

#include "fedkt/machine.h"

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

int fkt_cuda_count(void);  /* cards that the driver shows; 0 where there is no driver */
int fkt_cuda_usable(void); /* 1: card 0 can be used; never fails, never prints, leaves no sentence */
/* Failures name their cause and carry a hint: no driver, no such card (FKT_E_ARG), a card older than compute capability
 * 8.0, cuDNN or cuBLASLt missing or too old. */
FKT_MUST_USE fkt_status fkt_cuda_check_card(int index);
FKT_MUST_USE fkt_status fkt_cuda_describe(int index, struct fkt_device_facts *out);

#ifdef __cplusplus
}
#endif
#endif
