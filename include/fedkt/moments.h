/* SPDX-License-Identifier: Apache-2.0 */
/* moments.h - coordinates inside a public ball, and exact integer moments per class. pipeline.h fills them; what it is
 * made of is in advanced/moments.h.
 *
 * Letters: d length of u, m length of the record vector w (d for clip, d+1 for gain-shape), K classes, R radius of
 * the ball, Rq its integer radius; with several parts each has its own. From q on, everything is exact: the same
 * integers for any split, order or number of threads.
 */
#ifndef FEDKT_MOMENTS_H
#define FEDKT_MOMENTS_H

#include "fedkt/layout.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_coordinate_kind { FKT_COORDINATE_GAIN_SHAPE = 0, FKT_COORDINATE_CLIP = 1 };

#define FKT_RQ_MIN 64U
#define FKT_RQ_MAX 4096U
#define FKT_RQ_DEFAULT 256U
#define FKT_GAMMA_DEFAULT 0.35

struct fkt_coordinates {
    enum fkt_coordinate_kind kind;
    uint32_t dim;      /* d */
    uint32_t length;   /* m */
    uint32_t rq;       /* Rq */
    double radius;     /* R: the calibration's for clip, sqrt(1 + gamma^2) for gain-shape */
    double gamma;      /* gain-shape only */
    double log_mean;   /* c, gain-shape only */
    double log_spread; /* s, gain-shape only */
};

/* One part, not pooled: per class the block (n, S, M): 1 count, m sums, then the upper triangle of sum q q^T row by
 * row. Every layout: fedkt/layout.h. */
FKT_API size_t fkt_moments_block(size_t length); /* (m+1)(m+2)/2; 0 when it would overflow */

struct fkt_moments;
/* gives *out, all zero. n_max (0: the largest safe value) bounds the records per class so that n_max*Rq^2 stays
 * below 2^61 for every part; with pooled moments all records together have that bound as well. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_new(struct fkt_moments **out, uint32_t classes,
                                                const struct fkt_moments_layout *layout, uint64_t n_max);
FKT_API void fkt_moments_free(struct fkt_moments *m);
FKT_API FKT_MUST_USE fkt_status fkt_moments_merge(
    struct fkt_moments *into, const struct fkt_moments *from); /* checked; on failure `into` is unchanged */
FKT_API uint32_t fkt_moments_classes(const struct fkt_moments *m);
FKT_API const struct fkt_moments_layout *fkt_moments_layout(const struct fkt_moments *m);
FKT_API size_t fkt_moments_length(const struct fkt_moments *m);  /* numbers of q of one record, over all parts */
FKT_API size_t fkt_moments_numbers(const struct fkt_moments *m); /* fkt_layout_numbers */

/* The packed integers in the order of the layout, flushed; borrowed until the next call that changes m. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_packed(struct fkt_moments *m, const int64_t **packed);
/* Names, as in a task and on the command line; -1 when unknown. */
FKT_API const char *fkt_coordinate_name(enum fkt_coordinate_kind k);
FKT_API int fkt_coordinate_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
