/* SPDX-License-Identifier: Apache-2.0 */
/* learn_act.c - the operations of nn/act.h in a frozen network: forward, and backward by the input.
 *
 * They work on one image at a time on the calling thread; here each thread of the team has its part of the batch, so
 * bits do not depend on the number of threads. Not here: attention. */
#include "nn/act.h"
#include "nn/onednn/learn.h"
#include "nn/onednn/omp_team.h"

int fkt_learn_is_act(enum fkt_op_kind kind)
{
    switch (kind) {
    case FKT_OP_RELU6:
    case FKT_OP_SILU:
    case FKT_OP_SOFT_CLAMP:
    case FKT_OP_GLU:
    case FKT_OP_RESIZE:
    case FKT_OP_UPSAMPLE:
    case FKT_OP_SHUFFLE:
    case FKT_OP_UNSHUFFLE:
    case FKT_OP_GROUP_MEAN:
    case FKT_OP_REPEAT:
    case FKT_OP_RMS_NORM:
    case FKT_OP_GROUP_NORM:
    case FKT_OP_CONCAT:
    case FKT_OP_AFFINE: return 1;
    default: return 0;
    }
}

int fkt_learn_act_reads_source(enum fkt_op_kind kind)
{
    return kind == FKT_OP_RELU6 || kind == FKT_OP_SILU || kind == FKT_OP_SOFT_CLAMP || kind == FKT_OP_GLU ||
           kind == FKT_OP_RMS_NORM || kind == FKT_OP_GROUP_NORM;
}

fkt_status fkt_learn_draft_act(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_ACT, op);
    fkt_status st;
    k.x = s->buffer[op->in[0]];
    k.source = fkt_learn_draft_act_of(s, op->in[0]);
    if (fkt_op_reads_two(op)) {
        k.z = s->buffer[op->in[1]];
        k.second = fkt_learn_draft_act_of(s, op->in[1]);
    }
    k.result = fkt_learn_draft_act_of(s, i + 1);
    FKT_TRY(fkt_learn_draft_map(s, &k.y, i + 1));
    s->buffer[i + 1] = k.y;
    FKT_TRY(fkt_learn_draft_step(s, &k));
out:
    return st;
}

fkt_status fkt_learn_draft_act_back(struct fkt_learn_draft *s, uint32_t i, int input, uint32_t g, uint32_t *d)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_ACT_BACK, op);
    fkt_status st;
    if (fkt_learn_act_reads_source(op->kind)) k.x = s->buffer[op->in[0]];
    k.g = g;
    k.source = fkt_learn_draft_act_of(s, op->in[input]);
    k.result = fkt_learn_draft_act_of(s, i + 1);
    k.first = input ? s->shape[op->in[0]].c : 0;
    FKT_TRY(fkt_learn_draft_map(s, d, op->in[input]));
    k.d = *d;
    FKT_TRY(fkt_learn_draft_step(s, &k));
out:
    return st;
}

/* One step, on the whole batch or on a part of its images. */
struct job {
    const struct fkt_op *op;
    const float *weight, *bias;
    struct fkt_act x, z, y; /* ahead */
    struct fkt_act g, d;    /* back, with x */
    uint32_t first;
    int back;
};

static void ahead(const struct job *j)
{
    const struct fkt_op *op = j->op;
    switch (op->kind) {
    case FKT_OP_GLU: fkt_act_glu(&j->y, &j->x); break;
    case FKT_OP_UPSAMPLE: fkt_act_upsample(&j->y, &j->x, op->factor); break;
    case FKT_OP_SHUFFLE: fkt_act_shuffle(&j->y, &j->x, op->factor); break;
    case FKT_OP_UNSHUFFLE: fkt_act_unshuffle(&j->y, &j->x, op->factor); break;
    case FKT_OP_GROUP_MEAN: fkt_act_group_mean(&j->y, &j->x); break;
    case FKT_OP_REPEAT: fkt_act_repeat(&j->y, &j->x); break;
    case FKT_OP_RMS_NORM: fkt_act_rms_norm(&j->y, &j->x, j->weight, j->bias, op->value[0], NULL); break;
    case FKT_OP_GROUP_NORM: fkt_act_group_norm(&j->y, &j->x, j->weight, j->bias, op->value[0], op->groups); break;
    case FKT_OP_RESIZE: fkt_act_resize(&j->y, &j->x); break;
    case FKT_OP_CONCAT: fkt_act_concat(&j->y, &j->x, &j->z); break;
    default: fkt_act_unary(&j->y, &j->x, op); break;
    }
}

/* d times `factor`, in place. */
static void scale(const struct fkt_act *d, float factor)
{
    const struct fkt_op op = {.kind = FKT_OP_AFFINE, .value = {factor, 0}};
    fkt_act_unary(d, d, &op);
}

static void back(const struct job *j)
{
    const struct fkt_op *op = j->op;
    switch (op->kind) {
    case FKT_OP_GLU: fkt_act_glu_back(&j->d, &j->g, &j->x); break;
    case FKT_OP_UPSAMPLE: fkt_act_upsample_back(&j->d, &j->g, op->factor); break;
    case FKT_OP_SHUFFLE: fkt_act_unshuffle(&j->d, &j->g, op->factor); break;
    case FKT_OP_UNSHUFFLE: fkt_act_shuffle(&j->d, &j->g, op->factor); break;
    case FKT_OP_GROUP_MEAN:
        fkt_act_repeat(&j->d, &j->g);
        scale(&j->d, (float)j->g.c / (float)j->d.c);
        break;
    case FKT_OP_REPEAT:
        fkt_act_group_mean(&j->d, &j->g);
        scale(&j->d, (float)j->g.c / (float)j->d.c);
        break;
    case FKT_OP_RMS_NORM: fkt_act_rms_norm_back(&j->d, &j->g, &j->x, j->weight, op->value[0]); break;
    case FKT_OP_GROUP_NORM: fkt_act_group_norm_back(&j->d, &j->g, &j->x, j->weight, op->value[0], op->groups); break;
    case FKT_OP_RESIZE: fkt_act_resize_back(&j->d, &j->g); break;
    case FKT_OP_CONCAT: fkt_act_split(&j->d, &j->g, j->first); break;
    default: fkt_act_unary_back(&j->d, &j->g, j->x.data ? &j->x : NULL, op); break;
    }
}

/* Images [from, to). */
static struct fkt_act part_of(struct fkt_act a, size_t from, size_t to)
{
    if (a.data) a.data = (uint8_t *)a.data + fkt_act_bytes(&a) / a.n * from;
    a.n = (uint32_t)(to - from);
    return a;
}

static void run(void *ctx, unsigned member, unsigned members)
{
    struct job j = *(const struct job *)ctx;
    struct fkt_act *all[] = {&j.x, &j.z, &j.y, &j.g, &j.d};
    const size_t n = j.x.n;
    size_t from, to;
    fkt_team_part(n, 1, member, members, &from, &to);
    if (from == to) return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = part_of(*all[i], from, to);
    if (j.back) back(&j);
    else ahead(&j);
}

static struct fkt_act with(struct fkt_act a, const void *data)
{
    a.data = (void *)(uintptr_t)data; /* sources are only read */
    return a;
}

void fkt_learn_act_run(const struct fkt_learn *l, const struct fkt_learn_step *k, const struct fkt_norm_maps *m)
{
    struct job j = {.op = k->op,
                    .weight = fkt_array_at(l, FKT_WEIGHT, k->op->weight),
                    .bias = fkt_array_at(l, FKT_WEIGHT, k->op->bias),
                    .x = with(k->source, m->x),
                    .z = with(k->second, m->z),
                    .y = with(k->result, m->y),
                    .g = with(k->result, m->g),
                    .d = with(k->source, m->d),
                    .first = k->first,
                    .back = k->kind == FKT_LEARN_STEP_ACT_BACK};
    fkt_team_run(l->threads, run, &j);
}
