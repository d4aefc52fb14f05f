/* SPDX-License-Identifier: Apache-2.0 */
/* card.h - what travels with a synthetic dataset: README.md (what it is, what is promised, how to load it) and, for
 * programs, croissant.json. */
#ifndef FKT_IMAGES_CARD_H
#define FKT_IMAGES_CARD_H

#include "fedkt/image.h"

#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_card_hash {
    const char *name, *hex; /* "release", "9f86d0..." */
};

/* All text is borrowed and escaped where it is printed. NULL strings and n = 0 leave their line out. Nothing here may
 * be private: counts are those of the synthetic images, not of the records behind them. */
struct fkt_card {
    const char *name;           /* required */
    const char *const *classes; /* (n_classes) required */
    const uint64_t *counts;     /* (n_classes) synthetic images written of each class; may be NULL */
    size_t n_classes;
    uint32_t size;                   /* pixels a side */
    const char *format;              /* "ImageFolder", "npz", "WebDataset" or "DPImageBench" */
    const char *split;               /* "train" or "test" */
    double epsilon, delta;           /* epsilon 0 or infinite: NOT private, and the card says so in capitals */
    double mu;                       /* GDP parameter; 0: left out */
    const char *adjacency;           /* fkt_adjacency_name; NULL: unknown */
    const char *hides;               /* half a sentence: "whether any one image was used at all, ..."; NULL: unknown */
    const char *mechanism;           /* "joint", "paper" */
    const char *unit;                /* "one image"; NULL: that */
    const char *codec, *calibration; /* identity of the codec; name of the public set behind its calibration */
    const char *guide, *guided;      /* identity of the guide; how images were made from it, "by ..."; NULL: left out */
    uint32_t sites;                  /* 0: left out */
    const char *holds_against;       /* the certificate's words: whom the promise holds against */
    uint32_t counted, in_total;      /* noise shares that the promise counts, and that are in the sum; 0: left out */
    const struct fkt_card_hash *hashes;
    size_t n_hashes;
    int insecure_seed;
    const char *weak;        /* why the promise is weak, "epsilon 50 is above 20"; NULL: it is not */
    int simulated;           /* 1: no ledger was kept */
    double composed_epsilon; /* with the other releases of the same dataset; not above epsilon: left out */
    const uint8_t *below;    /* (n_classes) 1: the class cannot be told from an empty one; may be NULL */
    const char *version;
    const char *data;               /* where the images are in the folder: "data/"; NULL: "" */
    struct fkt_publisher publisher; /* passed fkt_publisher_check */
};

/* Appends the card. The only failure is memory (sticky in t) or a missing required field. */
FKT_MUST_USE fkt_status fkt_card_text(struct fkt_text *t, const struct fkt_card *card);

/* SHA-256, hexadecimal, of the files that croissant.json names, and of the images. */
struct fkt_croissant_files {
    const char *metadata_sha256, *certificate_sha256, *images_sha256;
};
/* Appends croissant.json of an ImageFolder; fails as fkt_card_text does. */
FKT_MUST_USE fkt_status fkt_croissant_text(struct fkt_text *t, const struct fkt_card *card,
                                           const struct fkt_croissant_files *files);

int fkt_card_private(const struct fkt_card *c);    /* may it be called differentially private? */
uint64_t fkt_card_total(const struct fkt_card *c); /* images; 0: not known */

/* FKT_E_ARG with a sentence for a licence, an address or a date that is not one. */
FKT_MUST_USE fkt_status fkt_publisher_check(const struct fkt_publisher *p);

#endif
