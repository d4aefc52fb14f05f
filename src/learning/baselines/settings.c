/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the numbers of the baselines as a table: name, default, valid values.
 *
 * Defaults. Those of a method are the papers' or, where a paper gives a range, those of PFLlib's command lines: pFedMe
 * lambda 15, 5 inner steps, beta 1; FedAMP alpha 1, lambda 1; FedPHP mu 0.9; FedFomo a fifth for validation; APPLE mu
 * 0.1. Inner rates follow the common rate unless they are given. Not from a paper: sigma 25 and self 0.5 of HeurFedAMP,
 * the teacher's share 0.1 and temperature 4 of FedPHP (the authors' program has the temperature), APPLE's eta2 1e-3 and
 * end 0.2, and the numbers of PartialFed, whose authors published no program. */
#include "learning/baselines/method.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { EPOCHS_MAX = 1000000 }; /* numbers of epochs in classifier/augment.c have 20 bits */
enum kind { U32, F64 };
enum { OPEN_LOW = 1, OPEN_HIGH = 2 };
static const struct setting {
    const char *name;
    enum kind kind;
    size_t at;
    double normal, low, high; /* an open end is excluded */
    int open;
} settings[] = {
/* clang-format off */
#define AT(f) #f, U32, offsetof(struct fkt_baseline_settings, f)
#define REAL(f) #f, F64, offsetof(struct fkt_baseline_settings, f)
    {AT(rounds), 10, 1, 100000, 0},
    {AT(epochs), 1, 1, 1000, 0},
    {AT(batch), 32, 2, 65536, 0},
    {REAL(rate), 0.05, 0, 1000, OPEN_LOW},
    {AT(flip), 0, 0, 1, 0},
    {AT(pad), 0, 0, 256, 0},
    {REAL(perfedavg_alpha), 0, 0, 1000, 0},
    {REAL(perfedavg_delta), 0, 0, 1, 0},
    {AT(perfedavg_steps), 1, 0, 100000, 0},
    {REAL(pfedme_lambda), 15, 0, 1e6, OPEN_LOW},
    {REAL(pfedme_rate), 0, 0, 1000, 0},
    {REAL(pfedme_beta), 1, 0, 10, OPEN_LOW},
    {AT(pfedme_steps), 5, 1, 1000, 0},
    {AT(fedamp_cosine), 1, 0, 1, 0},
    {REAL(fedamp_alpha), 1, 0, 1e9, OPEN_LOW},
    {REAL(fedamp_lambda), 1, 0, 1e9, 0},
    {REAL(fedamp_sigma), 25, 0, 1e12, OPEN_LOW},
    {REAL(fedamp_self), 0.5, 0, 1, 0},
    {REAL(fedphp_mu), 0.9, 0, 1, 0},
    {REAL(fedphp_share), 0.1, 0, 1, OPEN_HIGH},
    {REAL(fedphp_temperature), 4, 0, 1e6, OPEN_LOW},
    {REAL(fedfomo_validation), 0.2, 0, 1, OPEN_LOW | OPEN_HIGH},
    {REAL(apple_mu), 0.1, 0, 1e6, 0},
    {REAL(apple_rate), 1e-3, 0, 1000, 0},
    {REAL(apple_scale), 0, 0, 1e6, 0},
    {REAL(apple_end), 0.2, 0, 1, 0},
    {AT(partialfed_fixed), 0, 0, 1, 0},
    {REAL(partialfed_rate), 1, 0, 1e6, 0},
    {REAL(partialfed_temperature), 1, 0, 1e6, OPEN_LOW},
#undef AT
#undef REAL
    /* clang-format on */
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void store(struct fkt_baseline_settings *s, const struct setting *f, double value)
{
    char *at = (char *)s + f->at;
    if (f->kind == U32) *(uint32_t *)at = (uint32_t)value;
    else *(double *)at = value;
}

static fkt_status check_value(const struct setting *f, double x)
{
    const int above = f->open & OPEN_LOW ? x > f->low : x >= f->low; /* a NaN is neither above nor below */
    const int below = f->open & OPEN_HIGH ? x < f->high : x <= f->high;
    if (!above || !below)
        return fkt_fail(FKT_E_ARG, "the baselines' %s is %.15g: it must be %s %.15g and %s %.15g", f->name, x,
                        f->open & OPEN_LOW ? "more than" : "at least", f->low,
                        f->open & OPEN_HIGH ? "less than" : "at most", f->high);
    if (f->kind == U32 && x != floor(x))
        return fkt_fail(FKT_E_ARG, "the baselines' %s is %.15g: it must be a whole number", f->name, x);
    return FKT_OK;
}

void fkt_baseline_default(struct fkt_baseline_settings *s)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < SETTINGS; i++) store(s, &settings[i], settings[i].normal);
}

const char *fkt_baseline_setting(size_t i) { return i < SETTINGS ? settings[i].name : NULL; }

double fkt_baseline_value(const struct fkt_baseline_settings *s, size_t i)
{
    const char *at = (const char *)s;
    if (i >= SETTINGS) return NAN;
    at += settings[i].at;
    return settings[i].kind == U32 ? *(const uint32_t *)at : *(const double *)at;
}

fkt_status fkt_baseline_set(struct fkt_baseline_settings *s, const char *name, double value)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (!strcmp(settings[i].name, name)) {
            fkt_status st = check_value(&settings[i], value);
            if (st == FKT_OK) store(s, &settings[i], value);
            return st;
        }
    return fkt_fail(FKT_E_ARG, "the baselines have no setting '%s'", name);
}

fkt_status fkt_baseline_check(const struct fkt_baseline_settings *s)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < SETTINGS && st == FKT_OK; i++) st = check_value(&settings[i], fkt_baseline_value(s, i));
    if (st == FKT_OK && (uint64_t)s->rounds * s->epochs > EPOCHS_MAX)
        st = fkt_fail(FKT_E_ARG, "%u rounds of %u epochs are more than %d epochs", s->rounds, s->epochs, EPOCHS_MAX);
    return st;
}

const char *fkt_baseline_name(enum fkt_baseline b)
{
    const struct fkt_method *m = fkt_method_of(b);
    return m ? m->name : "unknown";
}

const char *fkt_baseline_source(enum fkt_baseline b)
{
    const struct fkt_method *m = fkt_method_of(b);
    return m ? m->source : "";
}

int fkt_baseline_parse(const char *name)
{
    for (int b = 0; b < FKT_BASELINES; b++)
        if (!strcmp(name, fkt_baseline_name((enum fkt_baseline)b))) return b;
    return -1;
}
