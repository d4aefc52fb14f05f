/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - facts about the processor that oneDNN does not check itself (see nn/cpu.h).
 *
 * Sources: Intel SDM vol. 2A, CPUID leaves 7 and 0x1D; Linux Documentation/arch/x86/xstate.rst for the permission. */
#include "nn/cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <unistd.h>

enum { LEAF_FEATURES = 7, LEAF_TILES = 0x1D, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
/* The number of arch_prctl on x86-64, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA. */
enum { ARCH_PRCTL = 158, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

void fkt_cpu_facts(struct fkt_cpu_facts *out)
{
    unsigned a, b, c, d;
    memset(out, 0, sizeof *out);
    out->max_leaf = __get_cpuid_max(0, NULL);
    if (out->max_leaf >= LEAF_FEATURES) {
        __cpuid_count(LEAF_FEATURES, 0, a, b, c, d);
        out->amx_announced = (d & AMX_BF16) && (d & AMX_TILE);
    }
    if (out->max_leaf >= LEAF_TILES) {
        __cpuid_count(LEAF_TILES, 0, a, b, c, d);
        out->palettes = a;
    }
    if (out->amx_announced) out->tiles_permitted = syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
void fkt_cpu_facts(struct fkt_cpu_facts *out) { memset(out, 0, sizeof *out); }
#endif

int fkt_amx_usable(const struct fkt_cpu_facts *f)
{
    return f->amx_announced && f->max_leaf >= 0x1D && f->palettes >= 1 && f->tiles_permitted;
}
