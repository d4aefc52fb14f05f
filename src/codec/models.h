/* SPDX-License-Identifier: Apache-2.0 */
/* models.h - where the networks that come with the program are. */
#ifndef FKT_CODEC_MODELS_H
#define FKT_CODEC_MODELS_H

#include "base/status.h"

/* The folder of model `name` with weights in it; gives *out, NULL where there is none. */
FKT_MUST_USE fkt_status fkt_models_named(char **out, const char *name);     /* in $FEDKT_MODELS */
FKT_MUST_USE fkt_status fkt_models_installed(char **out, const char *name); /* beside the library or program */

#endif
