/* SPDX-License-Identifier: Apache-2.0 */
/* digits.c - a buffer between the samplers and their source of entropy.
 * The first fetch is short, since a test or a tiny release needs little; later ones double up to a page, so that there
 * is one system call per thousand digits. Unused bytes are wiped together with the sampler. */
#include "privacy/digits.h"

#include <string.h>

#define FIRST_FILL 512

fkt_status fkt_digits_broken(const char *what)
{
    return fkt_fail_hint(FKT_E_ENTROPY, "discard everything made with this source of randomness",
                         "the source of randomness is broken: %s", what);
}

void fkt_digits_init(struct fkt_digits *d, const struct fkt_entropy *entropy)
{
    memset(d, 0, sizeof *d);
    d->next_fill = FIRST_FILL;
    if (entropy) d->entropy = *entropy;
    else fkt_entropy_os(&d->entropy);
}

fkt_status fkt_digits_refill(struct fkt_digits *d)
{
    fkt_status st = d->entropy.fill(d->entropy.self, d->buf, d->next_fill);
    if (st != FKT_OK) return st;
    d->at = 0;
    d->filled = d->next_fill;
    d->next_fill = 2 * d->next_fill < sizeof d->buf ? 2 * d->next_fill : sizeof d->buf;
    return FKT_OK;
}
