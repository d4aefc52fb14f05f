/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h - reading a model from ONNX; private to this module. fkt_model_load calls it for ONNX files. */
#ifndef FKT_CLASSIFIER_ONNX_H
#define FKT_CLASSIFIER_ONNX_H

#include "fedkt/learn.h"

FKT_MUST_USE fkt_status fkt_onnx_load(struct fkt_model **out, const char *path, uint32_t size);
/* The same from memory, which is borrowed; `path` is for errors. */
FKT_MUST_USE fkt_status fkt_onnx_parse(struct fkt_model **out, const uint8_t *bytes, size_t len, const char *path,
                                       uint32_t size);

#endif
