/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - the inside of a convolutional classifier; private to this room.
 *
 *   net     rgb normalised (3, S, S) -> ... -> MEAN (F, 1, 1) -> LINEAR (K, 1, 1); the last operation is the last layer
 *   slots   one tensor each, in the order of torchvision's state_dict, under its names; the last two are fc.weight
 *           (K, F) and fc.bias (K). Tensor i of the public header is slot i is array[i].
 */
#ifndef FKT_CLASSIFIER_MODEL_H
#define FKT_CLASSIFIER_MODEL_H

#include "fedkt/learn.h"

#include "nn/engine.h"
#include "nn/net.h"

#define FKT_MODEL_FORMAT "fedkt.model/1"
enum {
    FKT_MODEL_SIZE_MIN = 8,
    FKT_MODEL_SIZE_MAX = 512,
    FKT_MODEL_CLASSES_MAX = 1 << 16,
    FKT_MODEL_NAME_MAX = 48 /* bytes of a tensor's name with its end */
};

struct fkt_model_engines; /* what predictions have made ready; see predict.c */

struct fkt_model {
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t size, n_classes, features;
    char **classes; /* (K) */
    int nameless;   /* 1: they are numbers, since its file had no names */
    float mean[3], std[3];
    struct fkt_model_origin origin;
    struct fkt_net net;
    float **array; /* (n_slots) into slab, each on a boundary of 64 bytes */
    float *slab;
    struct fkt_model_engines *engines;
};

/* ---- resnet.c: the networks ---- */

/* Adds the whole network to an empty list; ask fkt_net_status(). RESNET8 has the CIFAR stem alone. */
void fkt_resnet_build(struct fkt_net *net, enum fkt_architecture a, enum fkt_stem s, uint32_t classes);
uint32_t fkt_resnet_features(enum fkt_architecture a);
/* Which network the shapes of conv1.weight and fc.weight belong to. 0: none. */
struct fkt_resnet_kind {
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t classes;
};
int fkt_resnet_recognise(struct fkt_resnet_kind *out, const uint64_t conv1[4], const uint64_t fc[2]);

/* ---- model.c ---- */

/* A model whose weights are all zero, for who fills them in: everything else as in fkt_model_new. */
FKT_MUST_USE fkt_status fkt_model_blank(struct fkt_model **out, const struct fkt_model_spec *spec);
/* A name that stands twice among these, borrowed; NULL: none does. Classes are matched by name. */
FKT_MUST_USE fkt_status fkt_model_twin(const char *const *names, uint32_t n, const char **twin);
/* Initial weights of one slot, from the seed, its name and its shape alone. */
void fkt_model_draw(struct fkt_model *m, size_t slot, uint64_t seed);
int fkt_model_is_statistic(const struct fkt_model *m, size_t slot); /* running_mean or running_var */
/* table[c][v]: what the network sees of value v in channel c. */
void fkt_model_pixels(const struct fkt_model *m, float table[3][256]);

/* ---- predict.c ---- */

FKT_MUST_USE fkt_status fkt_model_engines_new(struct fkt_model_engines **out);
void fkt_model_engines_free(struct fkt_model_engines *e);
void fkt_model_engines_drop(struct fkt_model_engines *e);
/* Prediction of what is normalised already: in (n, 3, S, S) -> logits (n, K), in float. */
FKT_MUST_USE fkt_status fkt_model_forward(const struct fkt_model *m, const float *in, size_t n, float *logits,
                                          unsigned threads);
/* The last layer: features (n, F) -> logits (n, K). Sums in double, in the order of the features. */
void fkt_model_last_layer(const struct fkt_model *m, const float *features, size_t n, float *logits);

/* ---- description.c: what stands beside the weights in a file, the same words in safetensors and ONNX ---- */

typedef fkt_status fkt_model_put(void *ctx, const char *key, const char *value);
typedef const char *fkt_model_get(void *ctx, const char *key); /* NULL: not there */
FKT_MUST_USE fkt_status fkt_model_describe(const struct fkt_model *m, fkt_model_put *put, void *ctx);
/* A blank model from what the tensors' shapes say (`kind`) and what the words say, which must agree. Without our words
 * (no key "format" that is ours) classes are "0", "1", ... and `size` counts (0: the stem's habit). `path` is for
 * sentences. */
FKT_MUST_USE fkt_status fkt_model_from_words(struct fkt_model **out, const struct fkt_resnet_kind *kind,
                                             fkt_model_get *get, void *ctx, uint32_t size, const char *path);

/* For base/file.h, of a file that holds m: what is not private is for its owner's eyes alone. */
int fkt_model_file_flags(const struct fkt_model *m, int force);

/* ---- model_file.c ---- */

struct fkt_safetensors;
/* As fkt_model_load, from a file that is open; `path` is for sentences. */
FKT_MUST_USE fkt_status fkt_model_read(struct fkt_model **out, const struct fkt_safetensors *file, const char *path,
                                       uint32_t size);
/* Numbers that no network can run with: NaN, infinities, a negative variance; names tensor and element. */
FKT_MUST_USE fkt_status fkt_model_check(const struct fkt_model *m, const char *path);

#endif
