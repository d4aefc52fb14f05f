/* SPDX-License-Identifier: Apache-2.0 */
/* curves.c - the curves of a training as CSV: a line of names, then one line per epoch.
 *
 *   epoch,loss,accuracy,held_loss,held_accuracy,ema_held_loss,ema_held_accuracy,rate,seconds,images_per_second
 *   1,2.01,0.25,1.9,0.31,,,0.1,12.5,4000
 *
 * Nine digits, decimal points, lines that end in '\n' (RFC 4180 would have "\r\n"; every reader accepts
 * both and line tools prefer this). An unknown value, NaN in fkt_epoch, is an empty field: pandas, R and spreadsheets
 * read that as missing, while "nan" makes some of them treat the column as text. */
#include "fedkt/learn.h"

#include "base/file.h"
#include "base/text.h"

#include <math.h>

static void add_number(struct fkt_text *t, double x)
{
    fkt_text_add(t, ",");
    if (!isnan(x)) fkt_text_addf(t, "%.9g", x);
}

fkt_status fkt_curves_csv(const char *path, const struct fkt_epoch *e, size_t n, int force)
{
    struct fkt_text t;
    fkt_status st;
    fkt_text_init(&t);
    fkt_text_add(&t, "epoch,loss,accuracy,held_loss,held_accuracy,ema_held_loss,ema_held_accuracy,rate,seconds,"
                     "images_per_second\n");
    for (size_t i = 0; i < n; i++) {
        fkt_text_addf(&t, "%u", e[i].epoch);
        add_number(&t, e[i].loss);
        add_number(&t, e[i].accuracy);
        add_number(&t, e[i].held_loss);
        add_number(&t, e[i].held_accuracy);
        add_number(&t, e[i].ema_held_loss);
        add_number(&t, e[i].ema_held_accuracy);
        add_number(&t, e[i].rate);
        add_number(&t, e[i].seconds);
        add_number(&t, e[i].images_per_second);
        fkt_text_add(&t, "\n");
    }
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_file_write(path, t.s, t.len, force ? FKT_FILE_REPLACE : 0));
out:
    fkt_text_clear(&t);
    return st;
}
