/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - where the weights of a codec are on this machine. */
#ifndef FKT_CODEC_CACHE_H
#define FKT_CODEC_CACHE_H

#include "base/status.h"

#include <stddef.h>

/* The file or folder to read weights from; gives *out. `weights` (a file, or a folder with the published files) wins;
 * NULL: the codec's folder in $FEDKT_MODELS, else in the cache, else beside the program (models.h).
 * FKT_E_IO with a hint that says what to put where when there is none; FKT_E_ARG when it is neither file nor folder, or
 * `codec` is not a valid folder name. */
FKT_MUST_USE fkt_status fkt_codec_weights_path(char **out, const char *codec, const char *weights);

/* After a failure to open network `name` as a task's guide: where its weights were missing, sentence and hint are of
 * the guide's. Returns st. */
fkt_status fkt_codec_guide_failure(fkt_status st, const char *name);

/* The codec's folder in the cache, whether or not it is there: $FEDKT_CACHE, else $XDG_CACHE_HOME/fedkt, else
 * $HOME/.cache/fedkt, then codecs/<codec>. Gives *out. */
FKT_MUST_USE fkt_status fkt_codec_cache(char **out, const char *codec);

/* 1 when the folder holds a safetensors file: a codec's weights, or some of them. */
int fkt_codec_has_weights(const char *folder);

/* "put config.json and x.safetensors into 'folder'"; out gets at most cap bytes with the NUL. */
void fkt_codec_put_hint(char *out, size_t cap, const char *codec, const char *folder);

#endif
