/* SPDX-License-Identifier: Apache-2.0 */
/* toy_federation.h - softmax regression at three sites, the problem of oracle/baselines.py: 3 classes, 4 features, x =
 * W, b and two statistics. Double inside. */
#ifndef FKT_TEST_TOY_FEDERATION_H
#define FKT_TEST_TOY_FEDERATION_H

#include "learning/baselines/method.h"

#include <math.h>
#include <string.h>

enum { TOY_SITES = 3, TOY_CLASSES = 3, TOY_FEATURES = 4, TOY_BATCH = 3, TOY_BIAS = 12, TOY_P = 15, TOY_STATE = 17 };

struct toy_federation {
    struct fkt_problem problem;
    float teacher[TOY_STATE];
    int taught;
    double share, temperature;
    int bad_site;              /* its gradients are NaN; -1: none */
    uint32_t stop_after, done; /* sites of rounds; 0: never */
    uint64_t gradients, validations;
};

static const uint64_t toy_records[TOY_SITES] = {6, 9, 5}, toy_epoch[TOY_SITES] = {2, 3, 1};
static const struct fkt_span toy_span[] = {{0, 12, 0, 0}, {12, 3, 1, 1}, {15, 2, 0, 0}};

static inline uint32_t toy_record(uint32_t site, uint64_t i, double *x)
{
    const uint32_t label = (uint32_t)((i * (site + 1) + site) % 3);
    for (uint32_t f = 0; f < TOY_FEATURES; f++)
        x[f] = sin(0.7 * (site + 1) + 1.3 * (double)i + 0.9 * f * (double)(i + 1)) + (f == label);
    return label;
}

static inline void toy_softmax(const float *w, const double *x, double temperature, double *p)
{
    double all = 0;
    for (int k = 0; k < TOY_CLASSES; k++) {
        double z = w[TOY_BIAS + k];
        for (int f = 0; f < TOY_FEATURES; f++) z += w[k * TOY_FEATURES + f] * x[f];
        all += p[k] = exp(z / temperature);
    }
    for (int k = 0; k < TOY_CLASSES; k++) p[k] /= all;
}

static inline fkt_status toy_gradient(void *self, uint32_t site, uint64_t step, float *w, float *g)
{
    struct toy_federation *q = self;
    double sum[TOY_P] = {0}, mean[2] = {0};
    q->gradients++;
    for (uint64_t i = 0; i < TOY_BATCH; i++) {
        double x[TOY_FEATURES], p[TOY_CLASSES], soft[TOY_CLASSES] = {0}, taught[TOY_CLASSES] = {0};
        const uint32_t label = toy_record(site, step % toy_epoch[site] * TOY_BATCH + i, x);
        toy_softmax(w, x, 1, p);
        if (q->taught) {
            toy_softmax(w, x, q->temperature, soft);
            toy_softmax(q->teacher, x, q->temperature, taught);
        }
        for (uint32_t k = 0; k < TOY_CLASSES; k++) {
            double slope = p[k] - (k == label);
            if (q->taught) slope = (1 - q->share) * slope + q->share * q->temperature * (soft[k] - taught[k]);
            for (uint32_t f = 0; f < TOY_FEATURES; f++) sum[k * TOY_FEATURES + f] += slope * x[f] / TOY_BATCH;
            sum[TOY_BIAS + k] += slope / TOY_BATCH;
        }
        for (int k = 0; k < 2; k++) mean[k] += x[k] / TOY_BATCH;
    }
    for (int i = 0; i < TOY_P; i++) g[i] = q->bad_site == (int)site ? NAN : (float)sum[i];
    for (int k = 0; k < 2; k++) w[TOY_P + k] = (float)(0.9 * w[TOY_P + k] + 0.1 * mean[k]);
    return FKT_OK;
}

static inline fkt_status toy_teach(void *self, const float *teacher, double share, double temperature)
{
    struct toy_federation *q = self;
    q->taught = teacher != NULL;
    q->share = share;
    q->temperature = temperature;
    if (teacher) memcpy(q->teacher, teacher, sizeof q->teacher);
    return FKT_OK;
}

static inline fkt_status toy_validate(void *self, uint32_t site, const float *w, double *loss)
{
    struct toy_federation *q = self;
    q->validations++;
    *loss = 0;
    for (uint64_t i = 20; i < 24; i++) {
        double x[TOY_FEATURES], p[TOY_CLASSES];
        const uint32_t label = toy_record(site, i, x);
        toy_softmax(w, x, 1, p);
        *loss -= log(p[label]) / 4;
    }
    return FKT_OK;
}

static inline int toy_stop(void *self, uint32_t done)
{
    struct toy_federation *q = self;
    q->done = done;
    return q->stop_after && done >= q->stop_after;
}

static inline void toy_federation_init(struct toy_federation *q, float start[TOY_STATE])
{
    memset(q, 0, sizeof *q);
    q->bad_site = -1;
    q->problem = (struct fkt_problem){.self = q,
                                      .sites = TOY_SITES,
                                      .layers = 2,
                                      .parameters = TOY_P,
                                      .state = TOY_STATE,
                                      .spans = 3,
                                      .span = toy_span,
                                      .records = toy_records,
                                      .epoch = toy_epoch,
                                      .gradient = toy_gradient,
                                      .teach = toy_teach,
                                      .validate = toy_validate,
                                      .stop = toy_stop};
    for (int k = 0; k < TOY_P; k++) start[k] = (float)(0.2 * cos(k));
    start[TOY_P] = 0;
    start[TOY_P + 1] = 1;
}

/* A method on it, with the default settings; free with fkt_rounds_clear(&t->r). */
struct toy_run {
    struct toy_federation q;
    struct fkt_baseline_settings s;
    struct fkt_rounds r;
    float start[TOY_STATE];
};

static inline fkt_status toy_run_init(struct toy_run *t, const struct fkt_method *m)
{
    fkt_baseline_default(&t->s);
    toy_federation_init(&t->q, t->start);
    return fkt_rounds_init(&t->r, m, &t->q.problem, &t->s, t->start, 1);
}

#endif
