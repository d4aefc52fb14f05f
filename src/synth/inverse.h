/* SPDX-License-Identifier: Apache-2.0 */
/* inverse.h - 1/n and 1/n^2 from a count that carries Gaussian noise, without bias. */
#ifndef FKT_SYNTH_INVERSE_H
#define FKT_SYNTH_INVERSE_H

struct fkt_inverse {
    double one; /* estimates 1/n */
    double two; /* estimates 1/n^2 */
};

/* pre: count >= 1, sigma >= 0, both finite. post: 0 < one <= 1/count, 0 < two <= 1/count^2, also when sigma is far
 * larger than count. */
struct fkt_inverse fkt_inverse_count(double count, double sigma);

#endif
