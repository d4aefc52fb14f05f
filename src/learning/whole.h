/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - what is in a whole model; private to whole*.c. */
#ifndef FKT_LEARNING_WHOLE_H
#define FKT_LEARNING_WHOLE_H

#include "fedkt/whole.h"

#include "nn/net.h"
#include "nn/weights.h"

#include <jansson.h>

#define FKT_WHOLE_FORMAT "fedkt.whole/1"

/* One encoder: pixels -> w.
 *
 *   x = pixel/255 * pixel_scale[c] + pixel_shift[c];   z = (net(x) - latent_shift) * latent_scale
 *   u = map (z - centre);   w = coordinates(u) */
struct fkt_whole_part {
    char name[64], identity[256];
    struct fkt_net net;
    float **array; /* (n_slots) */
    struct fkt_weights *weights;
    struct fkt_shape *shapes; /* (n_ops + 1) */
    float pixel_scale[3], pixel_shift[3];
    double latent_scale, latent_shift;
    struct fkt_calibration calibration; /* centre and map alone */
    char calibration_sha256[65];
    struct fkt_coordinates coordinates;
};

struct fkt_whole_engines;

struct fkt_whole {
    uint32_t size, parts;
    enum fkt_filter filter;
    enum fkt_fit fit;
    struct fkt_whole_part part[FKT_HEAD_PARTS_MAX]; /* by the parts of the head */
    struct fkt_head *head;
    struct fkt_model_origin origin;
    char not_private[64]; /* why; "": it is private */
    struct fkt_whole_engines *engines;
};

/* whole.c: weights, shapes and engines, once nets, arrays and sizes are there; checks that everything fits together. */
FKT_MUST_USE fkt_status fkt_whole_settle(struct fkt_whole *m);
int fkt_whole_file_flags(const struct fkt_whole *m, int force); /* of base/file.h */
/* whole_file.c: as fkt_whole_load, from an open file; `path` is for errors. */
FKT_MUST_USE fkt_status fkt_whole_read(struct fkt_whole **out, const struct fkt_safetensors *file, const char *path);

/* whole_net.c: the network as JSON. Reading: hostile input; slots are named after `prefix`. */
json_t *fkt_whole_net_json(const struct fkt_net *net); /* NULL: out of memory */
FKT_MUST_USE fkt_status fkt_whole_net_read(struct fkt_net *net, const json_t *json, const char *path);
/* FKT_E_STATE names an operation that a whole model cannot have. */
FKT_MUST_USE fkt_status fkt_whole_net_check(const struct fkt_net *net);

/* whole_predict.c */
FKT_MUST_USE fkt_status fkt_whole_engines_new(struct fkt_whole_engines **out);
void fkt_whole_engines_free(struct fkt_whole_engines *e);

#endif
