/* SPDX-License-Identifier: Apache-2.0 */
/* learn.h - convolutional classifiers: ResNet-18 and a small ResNet-8, trained on images in memory, saved under the
 * names that PyTorch's torchvision gives them.
 *
 *   fkt_model_new --> fkt_trainer_new --> fkt_trainer_run --> fkt_trainer_model --> fkt_model_save, fkt_model_predict
 * Letters: n images, K classes, S side in pixels, F features before the last layer (512 or 64). Pixels are uint8 RGB
 * (S, S, 3). A network sees (pixel / 255 - mean) / std, channel by channel.
 */
#ifndef FEDKT_LEARN_H
#define FEDKT_LEARN_H

#include "fedkt/classifier.h"
#include "fedkt/machine.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* RESNET8: 16, 32, 64 channels, one block each. */
enum fkt_architecture { FKT_ARCHITECTURE_RESNET18 = 0, FKT_ARCHITECTURE_RESNET8 = 1 };
/* 3x3 stride 1, no pool | 7x7 stride 2, then max-pool 3x3 stride 2; RESNET8 has the first alone. */
enum fkt_stem { FKT_STEM_CIFAR = 0, FKT_STEM_IMAGENET = 1 };
FKT_API const char *fkt_architecture_name(enum fkt_architecture a); /* "resnet18", "resnet8" */
FKT_API int fkt_architecture_parse(const char *s);                  /* -1: unknown */
FKT_API const char *fkt_stem_name(enum fkt_stem s);                 /* "cifar", "imagenet" */
FKT_API int fkt_stem_parse(const char *s);
/* What a reader must know of a model's data. Saved with it; text is "" where there is nothing to say. */
struct fkt_model_origin {
    int is_private;          /* 1: everything it was trained on came out of releases with the promise below */
    double epsilon, delta;   /* of that promise; 0 where is_private is 0 */
    char adjacency[16];      /* its kind of neighbours, "add-remove", ...; "": not private, or a file does not say */
    char release_sha256[65]; /* of the release, where there is one */
    char data[512];          /* "release 3f2a..., 1200 drawn per class", "folder 'x', 50000 images", ... one line */
    char fit[16];            /* how its images became square: "pad", "stretch"; "": "crop" */
    char recipe[512];        /* one line that repeats the run: options as typed, or "an experiment: ..." */
    char public_images[256]; /* "20000 images of 'x', sha256 ...": also seen, and outside the promise; "": none */
};

struct fkt_model_spec {
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t size;              /* S; any from 8 to 512 px */
    const char *const *classes; /* (K) copied */
    uint32_t n_classes;
    const float *mean, *std; /* (3) each; NULL: those of ImageNet, which are public and torchvision's habit */
    uint64_t seed;           /* initial weights: He normal (fan out) for convolutions, norms 1 and 0, last layer
                                   uniform +-1/sqrt(F), as torchvision begins */
};
struct fkt_model; /* shared by threads for prediction, as long as nobody writes to its tensors or its origin */
FKT_API FKT_MUST_USE fkt_status fkt_model_new(struct fkt_model **out, const struct fkt_model_spec *spec);
FKT_API FKT_MUST_USE fkt_status fkt_model_copy(struct fkt_model **out, const struct fkt_model *m);
FKT_API void fkt_model_free(struct fkt_model *m);
/* The same network with another last layer for other classes, newly drawn from seed: fine-tuning. */
FKT_API FKT_MUST_USE fkt_status fkt_model_new_head(struct fkt_model **out, const struct fkt_model *m,
                                                   const char *const *classes, uint32_t n_classes, uint64_t seed);

FKT_API enum fkt_architecture fkt_model_architecture(const struct fkt_model *m);
FKT_API enum fkt_stem fkt_model_stem(const struct fkt_model *m);
FKT_API uint32_t fkt_model_size(const struct fkt_model *m);
FKT_API uint32_t fkt_model_classes(const struct fkt_model *m);
FKT_API const char *fkt_model_class(const struct fkt_model *m, uint32_t k); /* borrowed */
FKT_API int fkt_model_named(const struct fkt_model *m); /* 0: read from a file without names, and not renamed since */
FKT_API uint32_t fkt_model_features(const struct fkt_model *m); /* F */
FKT_API uint64_t fkt_model_parameters(const struct fkt_model *m);
FKT_API const float *fkt_model_mean(const struct fkt_model *m); /* (3), then std (3) */
FKT_API const float *fkt_model_std(const struct fkt_model *m);
FKT_API const struct fkt_model_origin *fkt_model_origin(const struct fkt_model *m);
FKT_API void fkt_model_set_origin(struct fkt_model *m, const struct fkt_model_origin *origin);

/* Tensors in the order of the file, by torchvision's names ("conv1.weight", ...); num_batches_tracked is none here. */
struct fkt_model_tensor {
    const char *name; /* borrowed */
    uint32_t rank, shape[4];
    size_t count;
    float *data; /* of the model */
};
FKT_API size_t fkt_model_tensors(const struct fkt_model *m);
FKT_API struct fkt_model_tensor fkt_model_tensor(const struct fkt_model *m, size_t i);
/* To be called after writing to `data`: predictions look again; the origin, which was of other numbers, is emptied. */
FKT_API void fkt_model_changed(struct fkt_model *m);

/* safetensors; PyTorch's load_state_dict(strict=True) takes it. Class names, size, normalisation and origin are in its
 * metadata. A file without that metadata (from PyTorch) is read too: architecture and stem follow from the shapes,
 * classes are "0", "1", ..., S is `size` (0: 32 for the CIFAR stem, 224 for the other). Every misfit is named. A file
 * that is ONNX inside is read as one. What is not private is written for its owner alone (0600), as ONNX too. */
FKT_API FKT_MUST_USE fkt_status fkt_model_save(const struct fkt_model *m, const char *path, int force);
FKT_API FKT_MUST_USE fkt_status fkt_model_load(struct fkt_model **out, const char *path, uint32_t size);
/* ONNX, opset 13: input "images" (N,3,S,S) normalised as above, output "logits" (N,K), initialisers under torchvision's
 * names, origin and class names in metadata_props. */
FKT_API FKT_MUST_USE fkt_status fkt_model_export_onnx(const struct fkt_model *m, const char *path, int force);

enum fkt_learn_dtype { FKT_LEARN_DTYPE_F32 = 0, FKT_LEARN_DTYPE_BF16 = 1 };
struct fkt_predict_options {
    unsigned threads; /* 0: all */
    enum fkt_learn_dtype dtype;
    const struct fkt_progress *progress; /* may be NULL */
    struct fkt_device device;            /* zeros: the processor */
};
/* rgb (n, S, S, 3) -> logits (n, K) and, where not NULL, features (n, F): what goes into the last layer. The result of
 * an image does not depend on n, its neighbours or threads. */
FKT_API FKT_MUST_USE fkt_status fkt_model_predict(const struct fkt_model *m, const uint8_t *rgb, size_t n,
                                                  float *logits, float *features,
                                                  const struct fkt_predict_options *options);

/* ---- evaluation ---- */

/* Confidence beside truth, 15 equal bins of the largest probability: expected calibration error as Guo et al. 2017. */
#define FKT_CONFIDENCE_BINS 15
struct fkt_evaluation {
    struct fkt_score score; /* confusion */
    uint64_t count[FKT_CONFIDENCE_BINS], hit[FKT_CONFIDENCE_BINS];
    double confidence[FKT_CONFIDENCE_BINS]; /* sums */
    double loss;                            /* sum of cross-entropies, natural log */
};
FKT_API FKT_MUST_USE fkt_status fkt_evaluation_init(struct fkt_evaluation *j, uint32_t classes);
FKT_API void fkt_evaluation_clear(struct fkt_evaluation *j);
FKT_API FKT_MUST_USE fkt_status fkt_evaluation_add(struct fkt_evaluation *j, const float *logits /* (n, K) */,
                                                   const uint32_t *label, size_t n);
FKT_API double fkt_evaluation_accuracy(const struct fkt_evaluation *j); /* NaN when empty, like the next two */
FKT_API double fkt_evaluation_loss(const struct fkt_evaluation *j);     /* mean */
FKT_API double fkt_evaluation_calibration_error(const struct fkt_evaluation *j);

/* ---- training ---- */

/* Labelled images in memory; borrowed. Those of all epochs have a teacher's logits, or none of them. */
struct fkt_images {
    const uint8_t *rgb;    /* (n, S, S, 3) */
    const uint32_t *label; /* (n) < K */
    size_t n;
    uint32_t size;
    const float *teacher; /* (n, K) a teacher's logits of each image, the same for all its views; NULL: none */
};
/* The images of an epoch, 0 the first: valid until the next call, and as many each time. */
struct fkt_image_source {
    fkt_status (*images)(void *ctx, uint32_t epoch, struct fkt_images *out);
    void *ctx;
    int anew; /* 1: each epoch has its own; 0: the same each time. A checkpoint remembers it */
};

enum fkt_schedule { FKT_SCHEDULE_CONSTANT, FKT_SCHEDULE_STEP, FKT_SCHEDULE_COSINE, FKT_SCHEDULE_ONE_CYCLE }; /* 0..3 */
FKT_API const char *fkt_schedule_name(enum fkt_schedule s); /* "constant", "step", "cosine", "one-cycle" */
FKT_API int fkt_schedule_parse(const char *s);
enum fkt_learn_optimizer { FKT_LEARN_SGD = 0, FKT_LEARN_ADAM = 1 }; /* as PyTorch's SGD and Adam */

struct fkt_recipe {
    uint32_t epochs, batch; /* an incomplete last batch of an epoch is left out; a set smaller than a batch is one */
    double rate, momentum, decay; /* rate: the largest of the schedule; momentum and nesterov: SGD's */
    int nesterov;
    enum fkt_schedule schedule; /* by step: see fkt_recipe_rate */
    double warmup;              /* epochs of linear growth from 0, before step or cosine */
    double step_every, step_by; /* STEP: rate *= step_by every step_every epochs */
    int flip;                   /* left-right, one in two */
    uint32_t pad;               /* below S: zero-pad (the mean's colour) by so many pixels, cut S x S at random */
    double smoothing, ema;      /* of labels; decay of the average of weights per step, 0: none */
    double temperature, share;  /* of a teacher, a model or logits with the images; share 0: none */
    enum fkt_learn_dtype dtype;
    uint64_t seed;
    unsigned threads;         /* 0: all; part of what repeats to the bit on the processor */
    struct fkt_device device; /* zeros: the processor; a checkpoint of one device goes on on another */
    enum fkt_learn_optimizer optimizer;
    double beta1, beta2; /* ADAM; its epsilon is 1e-8 */
};
FKT_API void fkt_recipe_default(struct fkt_recipe *r);                        /* what the command line starts from */
FKT_API FKT_MUST_USE fkt_status fkt_recipe_check(const struct fkt_recipe *r); /* FKT_E_ARG says what is out of range */
FKT_API double fkt_recipe_rate(const struct fkt_recipe *r, uint64_t step, uint64_t steps_per_epoch);
struct fkt_epoch {                           /* what one epoch came to */
    uint32_t epoch;                          /* 1 is the first */
    double loss, accuracy;                   /* on the batches as they were trained on */
    double held_loss, held_accuracy;         /* on the held-out images; NaN: none */
    double ema_held_loss, ema_held_accuracy; /* the same of the averaged weights; NaN: none */
    double rate, seconds, images_per_second; /* rate: of its last step */
};

struct fkt_trainer_spec {
    const struct fkt_model *start; /* copied */
    struct fkt_recipe recipe;
    struct fkt_image_source source;
    const struct fkt_images *held;   /* borrowed; NULL: none. Of what is trained on: never a test set */
    const struct fkt_model *teacher; /* borrowed; NULL: none, or logits come with the images; the same classes */
};
struct fkt_trainer;
FKT_API FKT_MUST_USE fkt_status fkt_trainer_new(struct fkt_trainer **out, const struct fkt_trainer_spec *spec);
FKT_API void fkt_trainer_free(struct fkt_trainer *t);
FKT_API struct fkt_device fkt_trainer_device(const struct fkt_trainer *t); /* what it runs on: never AUTO */
FKT_API int fkt_trainer_moved(const struct fkt_trainer *t); /* 1: resumed, and earlier steps ran on the other kind */
struct fkt_trainer_hooks {
    fkt_status (*epoch)(void *ctx, const struct fkt_epoch *e); /* after each; may be NULL */
    void *ctx;
    const char *checkpoint;    /* file, replaced whole after every epoch and every checkpoint_steps; NULL: none */
    uint32_t checkpoint_steps; /* 0: epochs alone */
    const struct fkt_progress *progress; /* may be NULL; images of all epochs; a stop is saved */
};
FKT_API FKT_MUST_USE fkt_status fkt_trainer_run(struct fkt_trainer *t, const struct fkt_trainer_hooks *hooks);
/* Before the run: goes on where the checkpoint (0600) was written, to the bits of an undisturbed run. FKT_E_MISMATCH
 * names what differs: architecture, classes, size, recipe (not device), first images, anew, teacher, start. */
FKT_API FKT_MUST_USE fkt_status fkt_trainer_resume(struct fkt_trainer *t, const char *checkpoint);
FKT_API const struct fkt_epoch *fkt_trainer_history(const struct fkt_trainer *t, size_t *n); /* resumed ones too */
/* The weights now, their origin empty; averaged 1: their moving average (FKT_E_STATE without one). */
FKT_API FKT_MUST_USE fkt_status fkt_trainer_model(const struct fkt_trainer *t, int averaged, struct fkt_model **out);

/* A new last layer alone, on features (n, F) of fkt_model_predict: same loss; epochs, batch, rate, momentum, decay,
 * schedule and seed count; SGD, no device. Writes fc.weight and fc.bias, empties m's origin. Too few: one batch. */
FKT_API FKT_MUST_USE fkt_status fkt_head_tune(struct fkt_model *m, const struct fkt_recipe *recipe,
                                              const float *features, const uint32_t *label, size_t n);

/* ---- curves ---- */
FKT_API FKT_MUST_USE fkt_status fkt_curves_csv(const char *path, const struct fkt_epoch *e, size_t n, int force);
/* TensorBoard: one events file in `folder` (made where it is missing): train/loss, train/accuracy, held/loss, ... by
 * epoch; wall: seconds since 1970 of the first, then each epoch's seconds are added. */
FKT_API FKT_MUST_USE fkt_status fkt_curves_tensorboard(const char *folder, const struct fkt_epoch *e, size_t n,
                                                       double wall);

#ifdef __cplusplus
}
#endif
#endif
