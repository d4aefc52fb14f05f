/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h - what this processor supports for a network, and what is used.
 *
 * Some virtual machines announce AMX (the tile unit) but hide the CPUID leaf that describes its tiles: oneDNN then
 * executes tile instructions on a unit that it has not configured, and the process dies with SIGILL. So we decide about
 * AMX ourselves, before oneDNN's first use, from facts that can be recorded. FEDKT_MAX_ISA in the environment (sse41,
 * avx2, avx512, avx512_bf16, amx) limits further: a machine can be made to act as an older one. */
#ifndef FKT_NN_CPU_H
#define FKT_NN_CPU_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_cpu_facts {
    int amx_announced;   /* leaf 7 announces tiles and bfloat16 products on them */
    uint32_t max_leaf;   /* the highest CPUID leaf */
    uint32_t palettes;   /* leaf 0x1D: highest tile palette; 0 where the leaf does not exist */
    int tiles_permitted; /* the kernel allows this process the tile registers */
};

void fkt_cpu_facts(struct fkt_cpu_facts *out);          /* of this machine */
int fkt_amx_usable(const struct fkt_cpu_facts *f);      /* pure: announced, described and permitted */
FKT_MUST_USE fkt_status fkt_cpu_isa(const char **name); /* in effect, cap included: "avx512", "amx", ... */
FKT_MUST_USE fkt_status fkt_cpu_amx(int *usable);       /* 1: bfloat16 convolutions run on tiles */
FKT_MUST_USE fkt_status fkt_cpu_bf16(int *possible);    /* 1: a bfloat16 plan can be made at all */
const char *fkt_cpu_library(void);                      /* the library of the fast backend, with its version */
void fkt_cpu_processor(char *out, size_t cap); /* its name as the operating system gives it, "unknown" otherwise */

#endif
