/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - the internals of a convolutional classifier; private to this module.
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
    FKT_MODEL_NAME_MAX = 48 /* bytes of a tensor's name with its NUL */
};

struct fkt_model_engines; /* prepared engines for prediction; see predict.c */

struct fkt_model {
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t size, n_classes, features;
    char **classes; /* (K) */
    int nameless;   /* 1: class names are numbers, since the file had none */
    float mean[3], std[3];
    struct fkt_model_origin origin;
    struct fkt_net net;
    float **array; /* (n_slots) into slab, each on a boundary of 64 bytes */
    float *slab;
    struct fkt_model_engines *engines;
};

/* ---- resnet.c: the networks ---- */

/* Adds the whole network to an empty list; check fkt_net_status(). RESNET8 has the CIFAR stem alone. */
void fkt_resnet_build(struct fkt_net *net, enum fkt_architecture a, enum fkt_stem s, uint32_t classes);
uint32_t fkt_resnet_features(enum fkt_architecture a);
/* The network with these shapes of conv1.weight and fc.weight. 0: none. */
struct fkt_resnet_kind {
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t classes;
};
int fkt_resnet_recognise(struct fkt_resnet_kind *out, const uint64_t conv1[4], const uint64_t fc[2]);

/* ---- model.c ---- */

/* A model whose weights are all zero, to be filled in by the caller; everything else as in fkt_model_new. */
FKT_MUST_USE fkt_status fkt_model_blank(struct fkt_model **out, const struct fkt_model_spec *spec);
/* A name that occurs twice, borrowed; NULL: none. Classes are matched by name. */
FKT_MUST_USE fkt_status fkt_model_duplicate(const char *const *names, uint32_t n, const char **duplicate);
/* Initial weights of one slot, from the seed, its name and its shape alone. */
void fkt_model_draw(struct fkt_model *m, size_t slot, uint64_t seed);
int fkt_model_is_statistic(const struct fkt_model *m, size_t slot); /* running_mean or running_var */
/* table[c][v]: the network's input for value v in channel c. */
void fkt_model_pixels(const struct fkt_model *m, float table[3][256]);

/* ---- predict.c ---- */

FKT_MUST_USE fkt_status fkt_model_engines_new(struct fkt_model_engines **out);
void fkt_model_engines_free(struct fkt_model_engines *e);
void fkt_model_engines_drop(struct fkt_model_engines *e);
/* Prediction from normalised input: in (n, 3, S, S) -> logits (n, K), in float. */
FKT_MUST_USE fkt_status fkt_model_forward(const struct fkt_model *m, const float *in, size_t n, float *logits,
                                          unsigned threads, struct fkt_device device);
/* The last layer: features (n, F) -> logits (n, K). Sums in double, in the order of the features. */
void fkt_model_last_layer(const struct fkt_model *m, const float *features, size_t n, float *logits);

/* ---- description.c: the metadata of a file, the same in safetensors and ONNX ---- */

typedef fkt_status fkt_model_put(void *ctx, const char *key, const char *value);
typedef const char *fkt_model_get(void *ctx, const char *key); /* NULL: not there */
FKT_MUST_USE fkt_status fkt_model_describe(const struct fkt_model *m, fkt_model_put *put, void *ctx);
/* A model with zero weights from the tensors' shapes (`kind`) and the metadata, which must agree. Without our metadata
 * (no key "format" of ours) classes are "0", "1", ... and `size` is used (0: the stem's default). `path` is for errors.
 */
FKT_MUST_USE fkt_status fkt_model_from_words(struct fkt_model **out, const struct fkt_resnet_kind *kind,
                                             fkt_model_get *get, void *ctx, uint32_t size, const char *path);

/* Flags of base/file.h for a file that holds m: a model that is not private is readable by its owner alone. */
int fkt_model_file_flags(const struct fkt_model *m, int force);

/* ---- model_file.c ---- */

struct fkt_safetensors;
/* As fkt_model_load, from an open file; `path` is for errors. */
FKT_MUST_USE fkt_status fkt_model_read(struct fkt_model **out, const struct fkt_safetensors *file, const char *path,
                                       uint32_t size);
/* Finds numbers that no network can run with: NaN, infinities, a negative variance; names tensor and element. */
FKT_MUST_USE fkt_status fkt_model_check(const struct fkt_model *m, const char *path);

#endif
