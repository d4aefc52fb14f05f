/* SPDX-License-Identifier: Apache-2.0 */
/* member.h - tiny members of the codec families, written down by hand in each published layout.
 *
 * The names here are typed out again, not taken from src/codec: they are what the library is tested against. Values are
 * fixed by a seed and the order of the tensors, the same in every layout, and are multiples of a power of two with
 * seven bits, so that f32, f16 and bf16 hold the same numbers. */
#ifndef FKT_TEST_MEMBER_H
#define FKT_TEST_MEMBER_H

#include "tensor/safetensors.h"

enum { MEMBER_TENSORS = 512 };

struct member_tensor {
    char name[128];
    unsigned rank;
    uint64_t shape[4];
    uint64_t count;
    float *data;
    int drop; /* 1: is not written */
};
struct member {
    struct member_tensor t[MEMBER_TENSORS];
    size_t n;
    uint64_t seed, draws;
    int blank; /* values are left out: only the header is wanted */
};

void member_init(struct member *m, uint64_t seed);
void member_release(struct member *m);
/* Shape ends at the first zero. Gives the tensor, with random values scaled by its fan-in. */
struct member_tensor *member_add(struct member *m, const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
struct member_tensor *member_find(struct member *m, const char *name);
void member_reshape(struct member_tensor *t, uint64_t a, uint64_t b, uint64_t c, uint64_t d); /* zeros inside */
void member_write(const struct member *m, const char *path, enum fkt_dtype dtype);
/* The header alone, followed by a hole as long as the data: for networks of full width. */
void member_write_hole(const struct member *m, const char *path);

/* Halves of TAESD: side 0 encoder, 1 decoder; diffusers: the numbers and prefixes of AutoencoderTiny. */
void member_taesd(struct member *m, int side, uint64_t width, uint64_t latent, int diffusers);
/* Both halves of `taesd` at full width in a folder that is made; latents follow the image. */
void member_write_taesd(const char *folder, uint64_t seed);

struct member_dcae {
    int stages;
    int efficientvit;
    uint64_t width[8];
    int depth[2][8];  /* encoder, decoder; 0 for stage 0 only */
    int attention[8]; /* by stage */
    uint64_t latent;
    int scale;      /* window of a further scale; 0: none */
    int bare;       /* strided and interpolated steps */
    int batch_norm; /* in the decoder's residual stages */
};
void member_dcae(struct member *m, const struct member_dcae *c); /* both halves in one file */
extern const struct member_dcae member_small_dcae, member_small_sana, member_f32c32;

#endif
