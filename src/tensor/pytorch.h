/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.h - recognises files of torch.save, and gives the command that converts them to safetensors. */
#ifndef FKT_TENSOR_PYTORCH_H
#define FKT_TENSOR_PYTORCH_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

int fkt_pytorch_bytes(const uint8_t *bytes, size_t len); /* 1: a file that begins so is pickled */
int fkt_pytorch_name(const char *name);                  /* 1: it ends in .pth, .pt, .ckpt or .bin */
/* The hint for a failure about `file`: the shell's line that writes NAME.safetensors beside it. */
enum { FKT_PYTORCH_HINT = 384 };
void fkt_pytorch_hint(char out[FKT_PYTORCH_HINT], const char *file);
fkt_status fkt_pytorch_refuse(const char *path); /* FKT_E_FORMAT with that hint */

#endif
