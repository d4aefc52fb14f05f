/* SPDX-License-Identifier: Apache-2.0 */
/* federation.h - the aggregation parameters that follow from a task, and one whole round inside a process, with the
 * state machines of advanced/secagg.h on both sides. */
#ifndef FEDKT_ADVANCED_FEDERATION_H
#define FEDKT_ADVANCED_FEDERATION_H

#include "fedkt/federation.h"
#include "fedkt/status.h"
#include "fedkt/task.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/secagg.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a site does with its own copy of the task before it computes anything: everything that can be derived is derived
 * again. The roster in *params is the task's. With central noise *shares is all zero but for a count_scale of 1.
 * FKT_E_STATE when the task has no federation. */
FKT_API FKT_MUST_USE fkt_status fkt_federation_open(const struct fkt_task *task, struct fkt_sa_params *params,
                                                    struct fkt_share_plan *shares);

/* Signing keys for n sites and their roster; insecure_seed NULL: from the operating system. SIMULATIONS ONLY: all
 * secrets are made in one place. A real site makes its own pair with fkt_sa_identity and sends the public key alone. */
FKT_API FKT_MUST_USE fkt_status fkt_federation_keys(uint8_t *roster /* (n, 32) */, uint8_t *secrets /* (n, 64) */,
                                                    uint32_t n, const uint64_t *insecure_seed);

/* ---- one round in memory ---- */

/* A site that is gone from a phase on, and so never sends its message of that phase. */
struct fkt_federate_loss {
    uint32_t site;
    enum fkt_sa_state phase; /* FKT_SA_STATE_ADVERTISE to FKT_SA_STATE_REVEAL */
};

struct fkt_federate_spec {
    const struct fkt_task *task;
    const uint8_t *secrets; /* (sites, 64) */
    /* The exact moments (K, block) of a site, asked for once when its vector is due. Called from several threads, for
     * one site each. A failure ends the round with its status. */
    fkt_status (*moments)(void *self, uint32_t site, int64_t *exact);
    void *self;
    const struct fkt_federate_loss *lost; /* (n_lost), a site at most once */
    size_t n_lost;
    const uint64_t *insecure_seed; /* NULL: keys and noise from the operating system */
    unsigned threads;              /* 0: all */
    const struct fkt_progress *progress;
};

struct fkt_federate_result {
    int64_t *total;    /* (K, block) the survivors' vectors added up, in the units of the shares */
    uint8_t *survived; /* (sites) 1: its vector is in the total */
    uint32_t survivors;
    uint32_t
        lost[FKT_SA_STATE_REVEAL + 1]; /* sites lost in each phase; those of CONFIRM and REVEAL survive in the total */
    uint32_t throws;                   /* of the coin; 0 on a complete graph */
    uint64_t up, down;                 /* bytes that a survivor sent and got, its packed vector among them; mean */
    uint64_t packed;                   /* bytes of a packed vector */
    double seconds;
    double seconds_unmask;        /* of them, after the last message */
    double cpu_sites, cpu_server; /* processor seconds of all sites, and of the server with its unmasking */
};
/* FKT_E_TOO_FEW when the round ends with nothing released. Memory: a few vectors, and the sites' keys. */
FKT_API FKT_MUST_USE fkt_status fkt_federate(struct fkt_federate_result *out, const struct fkt_federate_spec *spec);
FKT_API void fkt_federate_clear(struct fkt_federate_result *r);

#ifdef __cplusplus
}
#endif
#endif
