/* SPDX-License-Identifier: Apache-2.0 */
/* privacy_audit.h - `fedkt audit`: attacks the production path of a release, from vectors to the ledger.
 *
 * Each case is a pair of neighbouring datasets that are as far apart as its adjacency allows, over several classes
 * of which some are empty, released many times with the code of a real release. The result is a lower bound: above
 * the promise it proves a bug, below it proves nothing. */
#ifndef FKT_AUDIT_PRIVACY_AUDIT_H
#define FKT_AUDIT_PRIVACY_AUDIT_H

#include "fedkt/advanced/privacy.h"
#include "fedkt/release.h"

#include "base/status.h"
#include "privacy/audit.h"
#include "privacy/noise_watch.h"
#include "task/task.h"

#define FKT_AUDIT_CASES 24
#define FKT_AUDIT_WORDS 240

struct fkt_audit_world;
struct fkt_audit_draw;

/* What the record vectors and their moments are (fedkt/layout.h). */
enum fkt_audit_layout {
    FKT_AUDIT_ONE = 0, /* one part */
    FKT_AUDIT_PARTS,   /* two parts, second moments in each class */
    FKT_AUDIT_POOLED,  /* two parts, second moments over all classes */
    FKT_AUDIT_JOINED   /* two parts as one vector */
};

/* How the two datasets differ. */
enum fkt_audit_canary {
    FKT_CANARY_ADD = 0, /* one record more, in a class that is empty without it */
    FKT_CANARY_SWAP,    /* one record for another of its class, at the angle that is easiest to detect */
    FKT_CANARY_MOVE     /* one record for another one of a class that is empty without it */
};

struct fkt_audit_options {
    struct fkt_privacy_spec privacy; /* split of one part; radius ignored; adjacency only with one_adjacency */
    int one_adjacency;               /* 1: that of `privacy` alone */
    int one_place;                   /* 1: `place` alone */
    enum fkt_noise_place place;
    int one_layout; /* 1: `layout` alone */
    enum fkt_audit_layout layout;
    uint64_t trials;   /* releases of each dataset of each case; 1000..2^32 */
    double confidence; /* probability that a correct program passes everything, for example 0.999 */
    const struct fkt_progress *progress;
    /* A draw of dataset 0 in another process; NULL: what two processes draw is not compared. */
    fkt_status (*elsewhere)(struct fkt_audit_world *w, struct fkt_audit_draw *out);
};

struct fkt_audit_case {
    enum fkt_adjacency adjacency;
    enum fkt_noise_place place;
    enum fkt_audit_canary canary;
    enum fkt_audit_layout layout;
    double split[3];                                /* budget split; sum and moment of all parts together */
    double mu_claimed;                              /* the largest Gaussian mu that (epsilon, delta) allows */
    double mu, mu_from, mu_to;                      /* estimate along the best linear test, with its interval */
    struct fkt_audit_result bound;                  /* without assumptions */
    struct fkt_noise_check noise[FKT_NOISE_CHECKS]; /* of the released numbers */
    struct fkt_noise_check sites[FKT_NOISE_CHECKS]; /* of two sites' noise shares compared; all 0 for central noise */
    char broken[FKT_AUDIT_WORDS];                   /* what is wrong; "": nothing was found */
};

struct fkt_audit_outcome {
    struct fkt_audit_case cases[FKT_AUDIT_CASES];
    size_t n;
    uint64_t quantised;                  /* vectors that were quantised and found inside the integer ball */
    double ledger_claimed, ledger_found; /* mu^2 of the charged releases, and of the file */
    char quantiser[FKT_AUDIT_WORDS], ledger[FKT_AUDIT_WORDS], processes[FKT_AUDIT_WORDS]; /* "": in order */
};

/* FKT_E_ARG on options out of range. A broken mechanism is not an error: it is reported in *out. */
FKT_MUST_USE fkt_status fkt_mechanism_audit(struct fkt_audit_outcome *out, const struct fkt_audit_options *options);
/* The first thing that is wrong; NULL: nothing was found. */
const char *fkt_audit_broken(const struct fkt_audit_outcome *o);
const char *fkt_audit_canary_name(enum fkt_audit_canary c); /* "add", "swap", "move" */
const char *fkt_audit_layout_name(enum fkt_audit_layout l); /* "one", "parts", "pooled", "joined" */
int fkt_audit_layout_parse(const char *s);                  /* -1: none of them */
const char *fkt_noise_check_name(enum fkt_noise_kind k);    /* "variance", ... */

/* ledger_check.c: a failure says what is wrong. */
FKT_MUST_USE fkt_status fkt_audit_ledger(struct fkt_audit_outcome *o, const struct fkt_audit_options *options,
                                         int releases);

/* ---- neighbours.c: datasets, and one release of them ---- */

enum {
    FKT_AUDIT_CLASSES = 4, /* records in the first and third; the second is always empty, the fourth but for a canary */
    FKT_AUDIT_RECORDS = 5, /* of the first and of the third class together */
    FKT_AUDIT_LENGTH = 3,  /* of the first part */
    FKT_AUDIT_Q = 5,       /* of all parts together */
    FKT_AUDIT_NUMBERS =
        FKT_AUDIT_CLASSES * (FKT_AUDIT_Q + 1) * (FKT_AUDIT_Q + 2) / 2, /* at most: those of joined parts */
    FKT_AUDIT_SITES = 6,
    FKT_AUDIT_LOST = 1,
    FKT_AUDIT_CORRUPT = 2
};

struct fkt_audit_world {
    struct fkt_task task;
    struct fkt_calibration calibration[2];
    int numbers;                                                         /* of a moments vector; the rest is 0 */
    uint8_t kind[FKT_AUDIT_NUMBERS], part[FKT_AUDIT_NUMBERS];            /* 0 count, 1 sum, 2 diagonal, 3 off it */
    struct fkt_share_plan shares;                                        /* of the task; counted 0: central noise */
    struct fkt_moments *sets[2];                                         /* all records of a dataset */
    int64_t exact[2][FKT_AUDIT_NUMBERS];                                 /* the same, packed */
    int64_t sites[2][FKT_AUDIT_SITES][FKT_AUDIT_NUMBERS];                /* spread over sites */
    double seen_sigma[FKT_AUDIT_NUMBERS], seen_shift[FKT_AUDIT_NUMBERS]; /* of what the attacker sees */
    double sigma[FKT_AUDIT_NUMBERS];                                     /* that the release claims */
    double share_sigma[FKT_AUDIT_NUMBERS];
    struct fkt_ledger once; /* allows any number of draws; the file is checked elsewhere */
};
/* One draw of one dataset. */
struct fkt_audit_draw {
    int64_t seen[FKT_AUDIT_NUMBERS];       /* by the attacker: a reader, or the server with its corrupt sites */
    int64_t noise[FKT_AUDIT_NUMBERS];      /* of the release */
    int64_t shares[2 * FKT_AUDIT_NUMBERS]; /* of two honest sites */
};
FKT_MUST_USE fkt_status fkt_audit_world_init(struct fkt_audit_world *w, const struct fkt_privacy_spec *privacy,
                                             enum fkt_noise_place place, enum fkt_audit_canary canary,
                                             enum fkt_audit_layout layout);
void fkt_audit_world_clear(struct fkt_audit_world *w);
/* audit_task.c: fills task, calibration and shares. */
FKT_MUST_USE fkt_status fkt_audit_task(struct fkt_audit_world *w, const struct fkt_privacy_spec *privacy,
                                       enum fkt_noise_place place, enum fkt_audit_layout layout);
FKT_MUST_USE fkt_status fkt_audit_world_draw(struct fkt_audit_world *w, int dataset, struct fkt_audit_draw *out);

#endif
