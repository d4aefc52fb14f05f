/* SPDX-License-Identifier: Apache-2.0 */
/* privacy_words.c - a privacy promise explained in sentences: for the status page, the report and `task show`.
 *
 * The plain-words bound: a mechanism with Gaussian-DP parameter mu lets no test between two neighbouring datasets be
 * right more often than Phi(mu/2) when both are equally likely (Dong, Roth, Su 2022: the trade-off curve of N(0,1)
 * against N(mu,1)). It holds for noise shares as for noise in one place (src/privacy/share_gdp.md). It is printed
 * rounded up. Unlike e^epsilon it is meaningful at epsilon = 10. */
#include "task/privacy_words.h"

#include "fedkt/advanced/federation.h"
#include "fedkt/privacy.h"
#include "fedkt/task.h"

#include <math.h>

double fkt_guess_percent(double mu) { return fmin(100, ceil(500 * erfc(-mu / 2 / sqrt(2))) / 10); }

static void promise(struct fkt_text *t, const struct fkt_task *task, double mu)
{
    const struct fkt_privacy_spec *p = &task->privacy;
    char why[FKT_PROMISE_WORDS];
    if (fkt_task_promise(task, why) == FKT_PROMISE_WEAK)
        fkt_text_addf(t, "WEAK PROMISE: %s. Nothing made under this task is called private.\n", why);
    fkt_text_addf(t, "Protected: %s.\nDifferential privacy with epsilon ", fkt_adjacency_protects(p->adjacency));
    fkt_text_number(t, p->epsilon, 6);
    fkt_text_add(t, " and delta ");
    fkt_text_number(t, p->delta, 6);
    fkt_text_addf(
        t,
        ": an adversary who knows everything else, and considers it equally likely %s, guesses right at most %.1f %% "
        "of the time from the release; a coin toss is right 50 %%, and a smaller epsilon is closer to that.",
        fkt_adjacency_info((int)p->adjacency)->question, fkt_guess_percent(mu));
}

static void noise(struct fkt_text *t, const struct fkt_federation *f)
{
    if (f->noise == FKT_NOISE_PLACE_DISTRIBUTED)
        fkt_text_addf(t,
                      "\nEvery site adds its noise share before its masked numbers leave it: no party, not even the "
                      "server, sees a sum without noise, and the promise holds with up to %u of %u sites lost and %u "
                      "colluding with the server.",
                      f->dropped, f->sites, f->corrupt);
    else
        fkt_text_addf(t,
                      "\nMasks hide the numbers of every single site; the server sees their exact sum, must be trusted "
                      "with it, and adds the noise. Up to %u of %u sites may be lost.",
                      f->dropped, f->sites);
}

fkt_status fkt_privacy_words(struct fkt_text *out, const struct fkt_task *task)
{
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    struct fkt_privacy_plan plan;
    fkt_status st;
    if (task->service.address[0] && task->service.seeded) {
        fkt_text_add(out,
                     "Nothing is protected: every random number of this task comes from a seed that is written in "
                     "it, so anyone can remove the noise and the masks. It is a rehearsal; do not use private images.");
        return fkt_text_status(out);
    }
    FKT_TRY(fkt_federation_open(task, &params, &shares));
    if (task->federation.noise == FKT_NOISE_PLACE_DISTRIBUTED) {
        promise(out, task, shares.plan.mu);
    } else {
        FKT_TRY(fkt_privacy_plan(&plan, &task->privacy));
        promise(out, task, plan.mu);
    }
    noise(out, &task->federation);
    fkt_text_add(out, "\nNot protected: what is true of a whole class, and several images of one person taken together "
                      "(the promise weakens with their number).");
    FKT_TRY(fkt_text_status(out));
out:
    return st;
}
