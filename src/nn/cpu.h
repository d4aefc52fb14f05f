/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h - what this processor can do for a network, and what of it is used.
 *
 * Some virtual machines announce AMX (the tile unit) but hide the leaf that describes its tiles: oneDNN then runs tile
 * instructions on a unit that it has not configured and the process dies with SIGILL. So the decision to use AMX is
 * ours, made before oneDNN's first use, from facts that can be written down. FEDKT_MAX_ISA in the environment
 * (sse41, avx2, avx512, avx512_bf16, amx) caps further: a machine can be made to act as an older one. */
#ifndef FKT_NN_CPU_H
#define FKT_NN_CPU_H

#include "base/status.h"

#include <stdint.h>

struct fkt_cpu_facts {
    int amx_announced;   /* leaf 7 says tiles and bfloat16 products on them */
    uint32_t max_leaf;   /* the highest CPUID leaf there is */
    uint32_t palettes;   /* leaf 0x1D: highest tile palette; 0 where the leaf does not exist */
    int tiles_permitted; /* the kernel lets this process use the tile registers */
};

void fkt_cpu_facts(struct fkt_cpu_facts *out);          /* of this machine */
int fkt_amx_usable(const struct fkt_cpu_facts *f);      /* pure: announced, described and permitted */
FKT_MUST_USE fkt_status fkt_cpu_isa(const char **name); /* in effect, cap included: "avx512", "amx", ... */
FKT_MUST_USE fkt_status fkt_cpu_amx(int *usable);       /* 1: bfloat16 convolutions run on tiles */
FKT_MUST_USE fkt_status fkt_cpu_bf16(int *possible);    /* 1: a bfloat16 plan can be made at all */
const char *fkt_cpu_library(void);                      /* behind the fast backend, with its version */

#endif
